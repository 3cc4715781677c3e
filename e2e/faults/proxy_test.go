//go:build e2e

package faults

import (
	"context"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"gotest.tools/v3/assert"
)

const (
	delayedFor     = 5 * time.Second
	hangsFor       = 12 * time.Second
	partitionedFor = 10 * time.Second
)

// proxy passes requests on to an engine, and makes one of them go wrong.
type proxy struct {
	fault  fault
	at     int         // the number of that request, from 1
	strike func() bool // what the fault does to processes; false: there are none
	http.RoundTripper
	forward *httputil.ReverseProxy
	pending sync.WaitGroup // for faults that take time

	mu         sync.Mutex
	requests   []*request
	disarmed   bool
	missed     bool // the request came, and the fault had nothing to strike
	partition  bool
	connection map[net.Conn]struct{}
}

// request is what was asked for, and when; took is 0 as long as it is not answered.
type request struct {
	line  string
	began time.Time
	took  time.Duration
}

// startProxy starts a proxy to an engine's socket, and returns it with its own address.
func startProxy(t *testing.T, engine string, c cell) (p *proxy, address string) {
	t.Helper()
	p = &proxy{fault: c.fault, at: c.at, connection: map[net.Conn]struct{}{}}
	p.RoundTripper = &http.Transport{
		DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			return (&net.Dialer{}).DialContext(ctx, "unix", engine)
		},
	}
	quiet := log.New(io.Discard, "", 0)
	p.forward = &httputil.ReverseProxy{
		Transport:     p,
		FlushInterval: -1,
		ErrorLog:      quiet,
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(&url.URL{Scheme: "http", Host: "docker"}) },
		ErrorHandler:  func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	socket := filepath.Join(t.TempDir(), "s")
	listener, err := (&net.ListenConfig{}).Listen(t.Context(), "unix", socket)
	assert.NilError(t, err)
	server := &http.Server{Handler: p, ErrorLog: quiet, ReadHeaderTimeout: time.Minute}
	go func() { _ = server.Serve(&proxyListener{listener, p}) }()
	t.Cleanup(func() { server.Close() })
	return p, "unix://" + socket
}

// ServeHTTP counts the request, and passes it on unless it is the one that goes wrong.
func (p *proxy) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	asked := &request{line: r.Method + " " + r.URL.RequestURI(), began: time.Now()}
	defer p.answered(asked)
	if !p.count(asked) {
		p.forward.ServeHTTP(w, r)
		return
	}
	done := sync.OnceFunc(p.pending.Done)
	defer done()
	switch p.fault {
	case faultDrop:
	case faultLose:
		p.answerNobody(r)
	case faultDelay:
		time.Sleep(delayedFor)
		p.forward.ServeHTTP(w, r)
		return
	case faultFail:
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(http.StatusInternalServerError)
		_, _ = io.WriteString(w, `{"message":"injected failure"}`)
		return
	case faultHang:
		_, _ = io.Copy(io.Discard, r.Body) // only then the server sees that the client gives up
		select {
		case <-r.Context().Done():
		case <-time.After(hangsFor):
		}
	case faultPartition:
		p.isolate()
		p.pending.Add(1)
		time.AfterFunc(partitionedFor, func() {
			defer p.pending.Done()
			p.join()
		})
	default:
		p.strikeOnce()
		time.AfterFunc(hangsFor, done) // engine 20.10 never ends the stream of a container that was not started
		p.forward.ServeHTTP(w, r)
		return
	}
	panic(http.ErrAbortHandler) // breaks the connection
}

// count records a request, and tells whether it is the one that goes wrong.
func (p *proxy) count(asked *request) bool {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.requests = append(p.requests, asked)
	if p.fault == faultNone || p.disarmed || len(p.requests) != p.at {
		return false
	}
	p.pending.Add(1)
	return true
}

// answered notes how long a request took. One that was hijacked took as long as its stream.
func (p *proxy) answered(asked *request) {
	p.mu.Lock()
	defer p.mu.Unlock()
	asked.took = time.Since(asked.began)
}

// timeline lists the requests so far: when each came, and how long it took.
func (p *proxy) timeline() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	var lines strings.Builder
	for _, asked := range p.requests {
		fmt.Fprintf(&lines, "%s %8s %s\n", asked.began.Format("15:04:05.000"), asked.took.Round(time.Millisecond), asked.line)
	}
	return lines.String()
}

// answerNobody lets the engine do what it is asked for, and drops its answer.
func (p *proxy) answerNobody(r *http.Request) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(r.Context()), hangsFor)
	defer cancel()
	asked := r.Clone(ctx)
	asked.RequestURI, asked.URL.Scheme, asked.URL.Host = "", "http", "docker"
	answer, err := p.RoundTrip(asked)
	if err != nil {
		return
	}
	defer answer.Body.Close()
	if answer.StatusCode != http.StatusSwitchingProtocols {
		_, _ = io.Copy(io.Discard, answer.Body)
	}
}

// strikeOnce lets the fault do what it does to processes.
func (p *proxy) strikeOnce() {
	if !p.strike() {
		p.mu.Lock()
		p.missed = true
		p.mu.Unlock()
	}
}

// disarm lets nothing go wrong any more: a guard may outlive its client, and make the request that the client has not made.
func (p *proxy) disarm() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.disarmed = true
}

// isolate breaks all connections, and refuses new ones until join is called.
func (p *proxy) isolate() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.partition = true
	for c := range p.connection {
		go c.Close()
	}
}

// join ends what isolate began.
func (p *proxy) join() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.partition = false
}

// seen are the requests so far; hit is the one that went wrong, or empty.
func (p *proxy) seen() (requests int, hit string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.fault == faultNone || p.missed || len(p.requests) < p.at {
		return len(p.requests), ""
	}
	return len(p.requests), p.requests[p.at-1].line
}

// proxyListener knows the connections of a proxy.
type proxyListener struct {
	net.Listener
	proxy *proxy
}

// Accept waits for a connection that is not refused.
func (l *proxyListener) Accept() (net.Conn, error) {
	for {
		c, err := l.Listener.Accept()
		if err != nil {
			return nil, err
		}
		if known := l.proxy.admit(c); known != nil {
			return known, nil
		}
		c.Close()
	}
}

// admit returns nil during a partition.
func (p *proxy) admit(c net.Conn) net.Conn {
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.partition {
		return nil
	}
	known := &proxyConn{UnixConn: c.(*net.UnixConn), proxy: p}
	p.connection[known] = struct{}{}
	return known
}

// proxyConn is a connection of a proxy. It can be closed for writing alone, as those of attach are.
type proxyConn struct {
	*net.UnixConn
	proxy *proxy
}

// Close closes it and forgets it.
func (c *proxyConn) Close() error {
	c.proxy.mu.Lock()
	delete(c.proxy.connection, c)
	c.proxy.mu.Unlock()
	return c.UnixConn.Close()
}
