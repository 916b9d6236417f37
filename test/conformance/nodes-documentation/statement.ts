/** A page of Kubernetes' documentation as a list of statements, each with the test that shows it here, or why not. */

/** A test by its file, from the root of the project, and its title as vitest prints it, without those around it. */
export interface Shown {
  readonly file: string;
  readonly name: string;
}

export interface Statement {
  /** In our own words. */
  readonly says: string;
  /**
   * - `shown`: the tests show it.
   * - `differs`: the tests show what happens here instead.
   * - `notHere`: it does not exist here.
   * - `advice`: a definition, or advice to people. There is nothing to test.
   */
  readonly outcome: 'shown' | 'differs' | 'notHere' | 'advice';
  readonly tests: readonly Shown[];
  /** Empty for `shown`. */
  readonly reason: string;
  /** Words of docs/deviations.md that state the difference. */
  readonly deviation?: string;
}

export interface Section {
  readonly heading: string;
  readonly statements: readonly Statement[];
}

export interface Page {
  readonly title: string;
  readonly url: string;
  readonly sections: readonly Section[];
}

export const section = (heading: string, ...statements: readonly Statement[]): Section => ({ heading, statements });

/** Names tests of one file. */
export const testsOf =
  (file: string) =>
  (...names: readonly string[]): readonly Shown[] =>
    names.map((name) => ({ file, name }));

export const shown = (says: string, ...tests: readonly (readonly Shown[])[]): Statement => ({
  says,
  outcome: 'shown',
  tests: tests.flat(),
  reason: '',
});

export interface Difference {
  readonly reason: string;
  readonly deviation?: string;
}

export const differs = (says: string, difference: Difference, ...tests: readonly (readonly Shown[])[]): Statement => ({
  says,
  outcome: 'differs',
  tests: tests.flat(),
  ...difference,
});

export const notHere = (says: string, reason: string, deviation?: string): Statement => ({
  says,
  outcome: 'notHere',
  tests: [],
  reason,
  ...(deviation === undefined ? {} : { deviation }),
});

export const advice = (says: string, reason = 'A definition, or advice to people.'): Statement => ({
  says,
  outcome: 'advice',
  tests: [],
  reason,
});

/** Files that several pages name. */
export const agent = {
  fleet: testsOf('test/e2e/agent-fleet.test.ts'),
  lease: testsOf('test/conformance/agent/lease.test.ts'),
  registration: testsOf('test/conformance/agent/registration.test.ts'),
  registers: testsOf('agent/app/registration.test.ts'),
  labels: testsOf('test/conformance/agent/node-labels.test.ts'),
  nodeIp: testsOf('test/conformance/agent/node-ip.test.ts'),
  conditions: testsOf('test/conformance/agent/node-conditions.test.ts'),
  resources: testsOf('test/conformance/agent/node-resources.test.ts'),
  statusPass: testsOf('test/conformance/agent/status-pass.test.ts'),
  statusReport: testsOf('test/conformance/agent/status-report.test.ts'),
  status: testsOf('agent/app/node-status.test.ts'),
  info: testsOf('agent/rules/node-info.test.ts'),
  run: testsOf('agent/app/run-agent.test.ts'),
  pods: testsOf('agent/app/pod-loop.test.ts'),
  shutdownRules: testsOf('test/conformance/agent/shutdown-rules.test.ts'),
  shutdown: testsOf('test/conformance/agent/shutdown-manager.test.ts'),
  swap: testsOf('test/conformance/agent/swap-and-qos.test.ts'),
};
export const cluster = {
  heartbeat: testsOf('test/conformance/heartbeat.test.ts'),
  zones: testsOf('test/conformance/zone-states.test.ts'),
  limiter: testsOf('test/conformance/limiter.test.ts'),
  noExecute: testsOf('test/conformance/no-execute.test.ts'),
  noSchedule: testsOf('test/conformance/no-schedule.test.ts'),
  eviction: testsOf('test/conformance/taint-eviction.test.ts'),
  legacy: testsOf('test/conformance/legacy-eviction.test.ts'),
  defaults: testsOf('test/conformance/default-tolerations.test.ts'),
  podGc: testsOf('test/conformance/pod-gc.test.ts'),
  orphans: testsOf('test/controllers/pod-gc.test.ts'),
  filters: testsOf('test/conformance/scheduler-filters.test.ts'),
  scores: testsOf('test/conformance/scheduler-scores.test.ts'),
  machine: testsOf('test/conformance/node-restriction.test.ts'),
  nodeKind: testsOf('shared/kinds/nodes/serve.test.ts'),
  nodeChanges: testsOf('functions/object-stream/work.test.ts'),
  daemons: testsOf('functions/workloads/daemonsets/reconcile.test.ts'),
  placement: testsOf('functions/workloads/daemonsets/placement.rule.test.ts'),
  volumes: testsOf('functions/pod-gc/volumes/reconcile.test.ts'),
  kubectl: testsOf('test/e2e/first-path.test.ts'),
  /** Statements that no other test shows. */
  pages: testsOf('test/conformance/nodes-documentation/pages.test.ts'),
  policyPage: testsOf('shared/config/policy-page.test.ts'),
};
/** A story of scenarios/. */
export const story = (...names: readonly string[]): readonly Shown[] =>
  testsOf('test/scenario/shipped.test.ts')(...names.map((name) => `${name}.yaml holds`));
