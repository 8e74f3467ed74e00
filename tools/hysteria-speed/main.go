// Memory to memory with Hysteria 2: server and client in one process, directly or through a relay.
//
// The client sends; what counts is what the server's side read, from the moment when the client began to connect. Prints
// one JSON object, with the processor time of both ends together.
package main

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"math/big"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/apernet/hysteria/core/v2/client"
	"github.com/apernet/hysteria/core/v2/server"
)

// What a client asks the server to connect to; the sink takes its place.
const anywhere = "sink.invalid:1"

// sink is where the server sends what comes: it counts the bytes and never answers.
type sink struct {
	counted *atomic.Uint64
	closed  chan struct{}
}

func (s *sink) Write(b []byte) (int, error) {
	s.counted.Add(uint64(len(b)))
	return len(b), nil
}

func (s *sink) Read([]byte) (int, error) {
	<-s.closed
	return 0, io.EOF
}

func (s *sink) Close() error {
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	return nil
}

func (s *sink) LocalAddr() net.Addr              { return &net.TCPAddr{} }
func (s *sink) RemoteAddr() net.Addr             { return &net.TCPAddr{} }
func (s *sink) SetDeadline(time.Time) error      { return nil }
func (s *sink) SetReadDeadline(time.Time) error  { return nil }
func (s *sink) SetWriteDeadline(time.Time) error { return nil }

// sinks connects every client's request to a sink.
type sinks struct{ counted *atomic.Uint64 }

func (s sinks) TCP(string) (net.Conn, error) {
	return &sink{s.counted, make(chan struct{})}, nil
}
func (s sinks) UDP(string) (server.UDPConn, error) { return nil, errors.New("no UDP here") }
func (s sinks) CheckUDP(string) error              { return errors.New("no UDP here") }

// everybody lets every client in.
type everybody struct{}

func (everybody) Authenticate(net.Addr, string, uint64) (bool, string) { return true, "client" }

func certificate() (tls.Certificate, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return tls.Certificate{}, err
	}
	template := x509.Certificate{
		SerialNumber: big.NewInt(1),
		NotAfter:     time.Now().Add(time.Hour),
		DNSNames:     []string{"localhost"},
	}
	der, err := x509.CreateCertificate(rand.Reader, &template, &template, &key.PublicKey, key)
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}, err
}

func processorSeconds() float64 {
	var usage syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &usage) != nil {
		return 0
	}
	seconds := func(t syscall.Timeval) float64 { return float64(t.Sec) + float64(t.Usec)*1e-6 }
	return seconds(usage.Utime) + seconds(usage.Stime)
}

type outcome struct {
	Bytes         uint64  `json:"bytes"`
	Seconds       float64 `json:"seconds"`
	BitsPerSecond float64 `json:"bits_per_second"`
	CPUSeconds    float64 `json:"cpu_seconds"`
	// What the two agreed on, bit/s; 0 where BBR sends.
	ToldBitsPerSecond float64 `json:"told_bits_per_second"`
}

func run(listen, connect string, seconds, told float64) (outcome, error) {
	cert, err := certificate()
	if err != nil {
		return outcome{}, err
	}
	socket, err := net.ListenPacket("udp", listen)
	if err != nil {
		return outcome{}, err
	}
	var counted atomic.Uint64
	serving, err := server.NewServer(&server.Config{
		TLSConfig:     server.TLSConfig{Certificates: []tls.Certificate{cert}},
		Conn:          socket,
		Outbound:      sinks{&counted},
		Authenticator: everybody{},
	})
	if err != nil {
		return outcome{}, err
	}
	go serving.Serve()
	if connect == "" {
		connect = socket.LocalAddr().String()
	}
	to, err := net.ResolveUDPAddr("udp", connect)
	if err != nil {
		return outcome{}, err
	}
	began, cpu := time.Now(), processorSeconds()
	// It counts bytes per second.
	ours, agreed, err := client.NewClient(&client.Config{
		ServerAddr:       to,
		TLSConfig:        client.TLSConfig{InsecureSkipVerify: true},
		CongestionConfig: client.CongestionConfig{Type: "bbr"},
		BandwidthConfig:  client.BandwidthConfig{MaxTx: uint64(told / 8)},
	})
	if err != nil {
		return outcome{}, err
	}
	stream, err := ours.TCP(anywhere)
	if err != nil {
		return outcome{}, err
	}
	go func() {
		block := make([]byte, 64<<10)
		for {
			if _, err := stream.Write(block); err != nil {
				return
			}
		}
	}()
	time.Sleep(time.Until(began.Add(time.Duration(seconds * float64(time.Second)))))
	bytes, took := counted.Load(), time.Since(began).Seconds()
	return outcome{
		Bytes:             bytes,
		Seconds:           took,
		BitsPerSecond:     float64(bytes) * 8 / took,
		CPUSeconds:        processorSeconds() - cpu,
		ToldBitsPerSecond: float64(agreed.Tx) * 8,
	}, nil
}

func main() {
	listen := flag.String("listen", "127.0.0.1:0", "where the server listens")
	connect := flag.String("connect", "", "where the client connects: a relay to the server; by default the server itself")
	seconds := flag.Float64("seconds", 10, "how long to send, the handshake included")
	told := flag.Float64("rate", 0, "bit/s that the client is told (\"brutal\"); 0 for BBR")
	flag.Parse()
	out, err := run(*listen, *connect, *seconds, *told)
	if err != nil {
		fmt.Fprintln(os.Stderr, "hysteria-speed:", err)
		os.Exit(1)
	}
	text, _ := json.Marshal(out)
	fmt.Println(string(text))
	// Neither end need say goodbye.
	os.Exit(0)
}
