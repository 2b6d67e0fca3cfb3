package policy

import (
	"net/netip"
	"slices"
)

// A class is what kind of address an address is; empty for one that is public.
type class string

// The classes of addresses that are not public.
const (
	public    class = ""
	thisHost  class = "an address of this machine itself"
	loopback  class = "a loopback address"
	private   class = "a private address"
	linkLocal class = "a link-local address"
	metadata  class = "an address of a cloud's metadata service"
	multicast class = "a multicast address"
	reserved  class = "a reserved address"
)

// metadataAddresses are where clouds tell machines their credentials, beside those at
// link-local addresses. Some are within ranges that an operator may open by a name.
var metadataAddresses = []netip.Addr{
	netip.MustParseAddr("100.100.100.200"), // Alibaba
	netip.MustParseAddr("168.63.129.16"),   // Azure
	netip.MustParseAddr("192.0.0.192"),     // Oracle
	netip.MustParseAddr("fd00:ec2::254"),   // Amazon
	netip.MustParseAddr("fd20:ce::254"),    // Google
}

// ranges are the special-purpose addresses that IANA lists, RFC 6890 and its successors.
// The first that holds an address decides.
var ranges = []struct {
	prefix netip.Prefix
	class  class
}{
	{netip.MustParsePrefix("0.0.0.0/8"), thisHost},
	{netip.MustParsePrefix("127.0.0.0/8"), loopback},
	{netip.MustParsePrefix("10.0.0.0/8"), private},
	{netip.MustParsePrefix("172.16.0.0/12"), private},
	{netip.MustParsePrefix("192.168.0.0/16"), private},
	{netip.MustParsePrefix("100.64.0.0/10"), private},    // shared with the provider's other customers
	{netip.MustParsePrefix("169.254.0.0/16"), linkLocal}, // holds most metadata services
	{netip.MustParsePrefix("198.18.0.0/15"), private},    // networks under test
	{netip.MustParsePrefix("192.0.0.0/24"), reserved},
	{netip.MustParsePrefix("192.0.2.0/24"), reserved},
	{netip.MustParsePrefix("192.88.99.0/24"), reserved},
	{netip.MustParsePrefix("198.51.100.0/24"), reserved},
	{netip.MustParsePrefix("203.0.113.0/24"), reserved},
	{netip.MustParsePrefix("224.0.0.0/4"), multicast},
	{netip.MustParsePrefix("240.0.0.0/4"), reserved},

	{netip.MustParsePrefix("::/128"), thisHost},
	{netip.MustParsePrefix("::1/128"), loopback},
	{netip.MustParsePrefix("fe80::/10"), linkLocal},
	{netip.MustParsePrefix("fc00::/7"), private},
	{netip.MustParsePrefix("fec0::/10"), private}, // as it was before RFC 3879
	{netip.MustParsePrefix("ff00::/8"), multicast},
	{netip.MustParsePrefix("2001::/23"), reserved}, // Teredo among them, which holds an IPv4 address
	{netip.MustParsePrefix("2001:db8::/32"), reserved},
	{netip.MustParsePrefix("2002::/16"), reserved}, // 6to4, which holds an IPv4 address
	{netip.MustParsePrefix("3fff::/20"), reserved},
	{netip.MustParsePrefix("2000::/3"), public},
	{netip.MustParsePrefix("::/0"), reserved},
}

// translated is where networks with IPv6 alone reach IPv4: the last four bytes are the
// address that is reached.
var translated = netip.MustParsePrefix("64:ff9b::/96")

// classOf returns the class of an address. An IPv6 address by which an IPv4 address is
// reached is of that one's class.
func classOf(a netip.Addr) class {
	a = a.WithZone("").Unmap()
	if translated.Contains(a) {
		all := a.As16()
		a = netip.AddrFrom4([4]byte(all[12:]))
	}

	// Metadata services come first, as some are within ranges that may be opened.
	if slices.Contains(metadataAddresses, a) {
		return metadata
	}

	for _, r := range ranges {
		if r.prefix.Contains(a) {
			return r.class
		}
	}

	if a.Is4() {
		return public
	}
	return reserved
}
