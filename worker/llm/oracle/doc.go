// Package oracle compares the wires of the project with the vendors' own SDKs: both are given the
// same requests to send and the same answers to read. It is a module of its own, so that nobody who
// builds the program has to build the SDKs. It has tests alone; `make test-oracle` runs them.
package oracle
