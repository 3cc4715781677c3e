//go:build e2e

package e2e

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"github.com/rogpeppe/go-internal/testscript"
)

// cmdCertificates makes a certificate authority, and certificates of a server on 127.0.0.1 and of a client, under the names
// that docker expects in DOCKER_CERT_PATH.
func cmdCertificates(ts *testscript.TestScript, neg bool, args []string) {
	usage(ts, !neg && len(args) == 1, "certificates FOLDER")
	dir := ts.MkAbs(args[0])
	ts.Check(os.Mkdir(dir, 0o700))
	ca := &x509.Certificate{
		Subject: pkix.Name{CommonName: "e2e authority"}, IsCA: true, BasicConstraintsValid: true, KeyUsage: x509.KeyUsageCertSign,
	}
	caKey := newKey(ts)
	certify(ts, filepath.Join(dir, "ca.pem"), ca, ca, caKey, caKey)
	for name, template := range map[string]*x509.Certificate{
		"server": {ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}},
		"":       {ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}},
	} {
		certificate, file := "cert.pem", "key.pem"
		if name != "" {
			certificate, file = name+".pem", name+"-key.pem"
		}
		key := newKey(ts)
		template.Subject = pkix.Name{CommonName: "e2e " + name}
		certify(ts, filepath.Join(dir, certificate), template, ca, key, caKey)
		raw, err := x509.MarshalECPrivateKey(key)
		ts.Check(err)
		writePEM(ts, filepath.Join(dir, file), "EC PRIVATE KEY", raw)
	}
}

func newKey(ts *testscript.TestScript) *ecdsa.PrivateKey {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	ts.Check(err)
	return key
}

// certify writes the certificate of key, which the authority signs.
func certify(ts *testscript.TestScript, path string, template, authority *x509.Certificate, key, authorityKey *ecdsa.PrivateKey) {
	serial, err := rand.Int(rand.Reader, big.NewInt(1<<62))
	ts.Check(err)
	template.SerialNumber = serial
	template.NotBefore, template.NotAfter = time.Now().Add(-time.Hour), time.Now().Add(24*time.Hour)
	raw, err := x509.CreateCertificate(rand.Reader, template, authority, &key.PublicKey, authorityKey)
	ts.Check(err)
	writePEM(ts, path, "CERTIFICATE", raw)
}

func writePEM(ts *testscript.TestScript, path, kind string, raw []byte) {
	ts.Check(os.WriteFile(path, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: raw}), 0o600))
}
