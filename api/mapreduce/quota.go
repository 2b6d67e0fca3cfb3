package mapreduce

import "time"

// A Quota bounds what the jobs of one tenant may use. Of each, 0 sets no bound.
type Quota struct {
	Jobs              int64 // that are kept, submissions under way counted
	UnendedJobs       int64 // jobs, of these, that have not ended; one that is paused has not
	WaitingUnits      int64 // units, as they were submitted, that have not ended
	StoredBytes       int64 // bytes of the documents of jobs that are kept
	TokensPerDay      int64 // tokens that jobs are given on one day, in UTC
	Calls             int64 // units that run at once: each makes one call of a model at a time
	RequestsPerMinute int64 // calls of the service
}

// A TenantRule is what an operator has set for one tenant.
type TenantRule struct {
	Quota Quota
	// Keep is for how long jobs are kept after their end; 0 keeps them until they are
	// deleted.
	Keep time.Duration
}

// QuotaExceeded is the reason of the error about a request for more than a quota allows.
const QuotaExceeded = "QUOTA_EXCEEDED"

// A TenantUse is what the jobs of one tenant use, beside what they may use.
type TenantUse struct {
	Tenant TenantID
	Quotas []QuotaUse    // in the order of Quota
	Keep   time.Duration // for how long its jobs are kept after their end; 0 until they are deleted
}

// A QuotaUse is what is used of one thing that a quota can bound.
type QuotaUse struct {
	Name  string // as a policy has it, such as waiting_units
	Used  int64  // now; of tokens_per_day and requests_per_minute on this day and in this minute
	Limit int64  // 0 sets no bound
}
