package model

import "github.com/coditect/mapreduce/store/jobs/limit"

// manners are what the servers of a model refuse, by a hash of their address.
type manners struct {
	known map[string]string // as workers here were told
	news  map[string]string // heard here, and yet to be told to the fleet
}

// hear takes what a worker says that a server refuses, and reports whether that is news for
// others.
func (m *manners) hear(server, refuses string) (news bool) {
	if was, known := m.known[server]; known && was == refuses || !m.keep(server, refuses) {
		return false
	}
	m.note(server, refuses)
	return true
}

// look takes what the fleet knows of a server, and reports whether workers here were not told.
func (m *manners) look(server, refuses string) (news bool) {
	_, later := m.news[server]
	return !later && m.known[server] != refuses && m.keep(server, refuses)
}

// keep keeps what a server refuses, unless that of too many servers is known.
func (m *manners) keep(server, refuses string) bool {
	if _, known := m.known[server]; !known && len(m.known) >= limit.MaxServers {
		return false
	}
	if m.known == nil {
		m.known = make(map[string]string)
	}
	m.known[server] = refuses
	return true
}

// note notes for the fleet what a server refuses.
func (m *manners) note(server, refuses string) {
	if m.news == nil {
		m.news = make(map[string]string)
	}
	m.news[server] = refuses
}

// takeNews takes what the fleet is to be told.
func (m *manners) takeNews() (news map[string]string) {
	news, m.news = m.news, nil
	return news
}

// putBack keeps what could not be told. The later word on a server counts.
func (m *manners) putBack(news map[string]string) {
	for server, refuses := range news {
		if _, newer := m.news[server]; !newer {
			m.note(server, refuses)
		}
	}
}
