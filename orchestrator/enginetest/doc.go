// Package enginetest runs orchestrators and workers over one store in one process, for the
// tests of the orchestrator and of its rooms. A [Cluster] is the store with what runs over
// it, in real time with settings that are [Quick]. A [Fleet] is a cluster whose orchestrators
// and workers come, go and die, in virtual time ([Virtually]). [Bare] and [Raw] are streams
// that say what no worker would. The rest are jobs to run and results to compare.
//
// Only tests import it.
package enginetest
