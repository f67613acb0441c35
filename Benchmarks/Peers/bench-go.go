// SPDX-License-Identifier: Apache-2.0

// Go's net/http, with BenchKit's cases, options and output.
package main

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"sort"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"
)

const clockMonotonic = 1

var (
	name, url, file                                     string
	count, warmUp, inFlight, connections, size, http2, ignored = 10_000, 0, 64, 64, 0, 0, 0
	client                                              *http.Client
	report                                              = map[string]float64{}
)

func main() {
	if len(os.Args) < 3 {
		fail(fmt.Errorf("usage: bench-go CASE URL [key=value ...]"))
	}
	name, url = os.Args[1], os.Args[2]
	numbers := map[string]*int{"count": &count, "warmup": &warmUp, "inflight": &inFlight, "connections": &connections, "size": &size, "http2": &http2, "onloop": &ignored}
	for _, argument := range os.Args[3:] {
		key, value, _ := strings.Cut(argument, "=")
		if number := numbers[key]; number != nil {
			*number, _ = strconv.Atoi(value)
		} else if key == "file" {
			file = value
		} else {
			fail(fmt.Errorf("unknown option %s", argument))
		}
	}
	raiseDescriptorLimit()
	transport := http.DefaultTransport.(*http.Transport).Clone()
	transport.Proxy = nil
	transport.ForceAttemptHTTP2 = http2 == 1
	transport.MaxIdleConns, transport.MaxIdleConnsPerHost, transport.MaxConnsPerHost = 0, connections, connections
	client = &http.Client{Transport: transport, Timeout: 10 * time.Minute}
	run()
	report["peak_rss_kib"] = status("VmHWM:")
	line, _ := json.Marshal(report)
	fmt.Println(string(line))
}

func run() {
	switch name {
	case "get", "slow":
		requests(warmUp)
		cpu, start := processorTime(), time.Now()
		latencies := requests(count)
		report["wall"] = time.Since(start).Seconds()
		report["cpu"] = processorTime() - cpu
		report["cpu_per_10k"] = report["cpu"] * 10_000 / float64(count)
		sort.Float64s(latencies)
		report["p50_us"] = latencies[len(latencies)/2] * 1e6
		report["p99_us"] = latencies[len(latencies)*99/100] * 1e6
		report["max_us"] = latencies[len(latencies)-1] * 1e6
	case "long":
		requests(10_000)
		report["rss_10k_kib"] = status("VmRSS:")
		requests(count - 10_000)
		report["rss_end_kib"] = status("VmRSS:")
	case "start":
		check(get())
		var now syscall.Timespec
		syscall.RawSyscall(syscall.SYS_CLOCK_GETTIME, clockMonotonic, uintptr(unsafe.Pointer(&now)), 0)
		report["answered_at"] = float64(now.Sec) + float64(now.Nsec)/1e9
	case "download", "delegate", "upload":
		cpu, start := processorTime(), time.Now()
		bulk()
		report["wall"] = time.Since(start).Seconds()
		report["cpu"] = processorTime() - cpu
	default:
		report["unsupported"] = 1
	}
}

func bulk() {
	if name == "upload" {
		body, err := os.Open(file)
		fail(err)
		request, err := http.NewRequest("PUT", url, body)
		fail(err)
		information, err := body.Stat()
		fail(err)
		request.ContentLength = information.Size()
		response, err := client.Do(request)
		fail(err)
		defer response.Body.Close()
		if response.StatusCode >= 300 {
			fail(fmt.Errorf("status %d", response.StatusCode))
		}
		return
	}
	response, err := client.Get(url)
	fail(err)
	defer response.Body.Close()
	target := io.Discard
	if name == "download" {
		created, err := os.Create(file)
		fail(err)
		defer created.Close()
		target = created
	}
	length, err := io.Copy(target, response.Body)
	fail(err)
	check(int(length))
}

// Makes requests, inFlight at a time, and returns how long each took, in seconds.
func requests(count int) []float64 {
	var next int64
	var callers sync.WaitGroup
	found := make([][]float64, inFlight)
	for caller := range found {
		callers.Add(1)
		go func(caller int) {
			defer callers.Done()
			for atomic.AddInt64(&next, 1) <= int64(count) {
				start := time.Now()
				check(get())
				found[caller] = append(found[caller], time.Since(start).Seconds())
			}
		}(caller)
	}
	callers.Wait()
	var all []float64
	for _, latencies := range found {
		all = append(all, latencies...)
	}
	return all
}

func get() int {
	response, err := client.Get(url)
	fail(err)
	defer response.Body.Close()
	if response.StatusCode != 200 {
		fail(fmt.Errorf("status %d", response.StatusCode))
	}
	body, err := io.ReadAll(response.Body)
	fail(err)
	return len(body)
}

func check(length int) {
	if size != 0 && length != size {
		fail(fmt.Errorf("got %d bytes, not %d", length, size))
	}
}

func fail(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, "bench-go:", err)
		os.Exit(1)
	}
}

func processorTime() float64 {
	var usage syscall.Rusage
	fail(syscall.Getrusage(syscall.RUSAGE_SELF, &usage))
	return float64(usage.Utime.Sec+usage.Stime.Sec) + float64(usage.Utime.Usec+usage.Stime.Usec)/1e6
}

func status(key string) float64 {
	file, err := os.Open("/proc/self/status")
	fail(err)
	defer file.Close()
	for lines := bufio.NewScanner(file); lines.Scan(); {
		if fields := strings.Fields(lines.Text()); fields[0] == key {
			value, _ := strconv.ParseFloat(fields[1], 64)
			return value
		}
	}
	return 0
}

func raiseDescriptorLimit() {
	var limit syscall.Rlimit
	fail(syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit))
	limit.Cur = limit.Max
	fail(syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit))
}
