package main

import (
	"fmt"
	"math"
	"net"
	"time"

	"go.temporal.io/server/common/authorization"
	"go.temporal.io/server/common/cluster"
	"go.temporal.io/server/common/config"
	"go.temporal.io/server/common/dynamicconfig"
	"go.temporal.io/server/common/log"
	"go.temporal.io/server/common/persistence/sql/sqlplugin/sqlite"
	"go.temporal.io/server/common/primitives"
	schema "go.temporal.io/server/schema/sqlite"
	"go.temporal.io/server/temporal"
)

const (
	host     = "127.0.0.1"
	oneNode  = "active" // the name of the cluster
	disabled = "disabled"
	shards   = 4
)

// unlimited are the settings without which the server refuses work of a single namespace long before it is busy.
var unlimited = dynamicconfig.StaticClient{
	dynamicconfig.FrontendRPS.Key():                                  math.MaxInt32,
	dynamicconfig.FrontendMaxNamespaceRPSPerInstance.Key():           math.MaxInt32,
	dynamicconfig.FrontendMaxNamespaceVisibilityRPSPerInstance.Key(): math.MaxInt32,
	dynamicconfig.HistoryRPS.Key():                                   math.MaxInt32,
	dynamicconfig.MatchingRPS.Key():                                  math.MaxInt32,
	dynamicconfig.FrontendPersistenceMaxQPS.Key():                    math.MaxInt32,
	dynamicconfig.HistoryPersistenceMaxQPS.Key():                     math.MaxInt32,
	dynamicconfig.MatchingPersistenceMaxQPS.Key():                    math.MaxInt32,
}

// configOf returns the settings of a server of one process with a database in a file.
func configOf(file string) (*config.Config, error) {
	names := []primitives.ServiceName{primitives.FrontendService, primitives.HistoryService, primitives.MatchingService, primitives.WorkerService}
	ports, err := freePorts(2 * len(names))
	if err != nil {
		return nil, err
	}
	services := make(map[string]config.Service)
	for i, name := range names {
		services[string(name)] = config.Service{RPC: config.RPC{GRPCPort: ports[2*i], MembershipPort: ports[2*i+1], BindOnLocalHost: true}}
	}
	frontend := fmt.Sprintf("%s:%d", host, ports[0])

	c := &config.Config{
		Services: services,
		Persistence: config.Persistence{
			DefaultStore: sqlite.PluginName, VisibilityStore: sqlite.PluginName, NumHistoryShards: shards,
			DataStores: map[string]config.DataStore{sqlite.PluginName: {SQL: &config.SQL{
				PluginName: sqlite.PluginName, DatabaseName: file,
				ConnectAttributes: map[string]string{"mode": "rwc", "_journal_mode": "wal", "_synchronous": "2"},
			}}},
		},
		ClusterMetadata: &cluster.Config{
			FailoverVersionIncrement: 10, MasterClusterName: oneNode, CurrentClusterName: oneNode,
			ClusterInformation: map[string]cluster.ClusterInformation{oneNode: {Enabled: true, InitialFailoverVersion: 1, RPCAddress: frontend}},
		},
		DCRedirectionPolicy: config.DCRedirectionPolicy{Policy: "noop"},
		Archival: config.Archival{
			History: config.HistoryArchival{State: disabled}, Visibility: config.VisibilityArchival{State: disabled},
		},
		NamespaceDefaults: config.NamespaceDefaults{Archival: config.ArchivalNamespaceDefaults{
			History: config.HistoryArchivalNamespaceDefaults{State: disabled}, Visibility: config.VisibilityArchivalNamespaceDefaults{State: disabled},
		}},
		PublicClient: config.PublicClient{HostPort: frontend},
	}
	c.Global.Membership = config.Membership{MaxJoinDuration: 30 * time.Second, BroadcastAddress: host}
	return c, nil
}

// freePorts returns ports of the loopback that nobody listens on.
func freePorts(n int) (ports []int, err error) {
	for range n {
		l, err := net.Listen("tcp", host+":0")
		if err != nil {
			return nil, err
		}
		defer l.Close()
		ports = append(ports, l.Addr().(*net.TCPAddr).Port)
	}
	return ports, nil
}

// start makes the database and starts a server on it.
func start(c *config.Config) (temporal.Server, error) {
	db := c.Persistence.DataStores[sqlite.PluginName].SQL
	if err := schema.SetupSchema(db); err != nil {
		return nil, err
	}
	ours, err := schema.NewNamespaceConfig(oneNode, namespace, false, nil)
	if err != nil {
		return nil, err
	}
	if err := schema.CreateNamespaces(db, ours); err != nil {
		return nil, err
	}

	node, err := temporal.NewServer(
		temporal.WithConfig(c), temporal.ForServices(temporal.DefaultServices), temporal.WithLogger(log.NewNoopLogger()),
		temporal.WithAuthorizer(authorization.NewNoopAuthorizer()), temporal.WithDynamicConfigClient(unlimited),
	)
	if err != nil {
		return nil, err
	}
	return node, node.Start()
}
