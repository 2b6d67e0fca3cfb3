// Package simulation runs the service with everything around it in one process: orchestrators,
// workers, their store, the network between them, and clocks. A [Scenario], which follows from a
// seed, says what is run and what befalls it: links are blocked in one direction or in both, or
// slow; connections break; messages come twice; clocks jump; the store conflicts, dawdles, is full,
// goes away, or says that it does not know; processes stop, die, and lose their machines. [Run]
// lets a scenario happen, ends all of that, and checks what has to hold whatever happened:
//
//  1. each unit has one result, which is that of its last attempt; no other was ever completed;
//  2. attempts at a unit are numbered upwards, and none is begun twice;
//  3. the ledger of a job has each of its units as completed once, by that attempt;
//  4. what doctor checks: queues, counters, indexes, grants and records agree;
//  5. a job is complete if and only if its units are, a reduce reads the results of its inputs as they
//     were committed, and the result of a job stands for each document once;
//  6. never more units of a job are claimed than may run at once, nor of all jobs than may ask models, and none
//     of a job that has ended;
//  7. a submission that was acknowledged is a job, and one that was made again is one job;
//  8. once nothing goes wrong any more, everything ends;
//  9. units are not run again without a reason: a failure, a pause, or something that befell a
//     worker;
//  10. nothing of a job is left once it was deleted.
//
// The simulation has no clock of its own: it is as virtual as the time of its process. In a bubble of
// testing/synctest a run takes a moment, and what runs at once is as the scheduler of Go has it. As
// a WebAssembly module, whose clocks and whose randomness come from outside, the same scenario has the
// same history, to the last byte that is sent and stored: [Report].Hash is equal. internal/dev/simulate
// runs it so. [Shrink] makes a scenario that fails smaller.
//
// Only programs for development and tests import it. It must not import testing, nor a driver of a
// store that needs files.
package simulation
