/**
 * Files with cases that test a rule (a pure function, or a model that applies its decisions) instead of the
 * controllers, the API or the agent's loops that run it. Paths from the project's root; a case that is covered
 * elsewhere as well counts as run.
 */
export const filesOnRules: readonly string[] = [
  'test/conformance/cidr-set.test.ts',
  'test/conformance/legacy-eviction.test.ts',
  'test/conformance/no-schedule.test.ts',
  'test/conformance/pod-gc.test.ts',
  'test/conformance/taint-eviction.test.ts',
  'test/conformance/cloud-node.test.ts',
  'test/conformance/cloud-initialisation.test.ts',
  'test/conformance/node-restriction.test.ts',
  'test/conformance/range-allocator.test.ts',
  'test/conformance/agent/node-conditions.test.ts',
  'test/conformance/agent/node-ip.test.ts',
  'test/conformance/agent/node-labels.test.ts',
  'test/conformance/agent/node-resources.test.ts',
  'test/conformance/agent/shutdown-rules.test.ts',
  'test/conformance/agent/swap-and-qos.test.ts',
  'test/conformance/agent/topology.test.ts',
];
