/**
 * Policy fields that are inputs of the module. Each changes what functions read, a threshold or an option of the
 * template (options.ts).
 * Terraform cannot run the rules of a policy. So a field has the range that they leave it beside defaults.
 */
import { parsePolicy } from '../../../shared/config/policy.ts';
import { defaultPolicy, type Policy } from '../../../shared/fleet/policy.ts';

/** What main.tf checks. `rule` is its message. */
export type PolicyInput =
  | { readonly rule: string; readonly least: number; readonly most: number; readonly isWhole: boolean }
  | { readonly rule: string; readonly values: readonly (string | number | boolean)[] };

/** No rule relates one of these to another. */
const NUMBERS = [
  'nodeMonitorGracePeriodSeconds',
  'nodeStartupGracePeriodSeconds',
  'nodeEvictionRatePerSecond',
  'secondaryNodeEvictionRatePerSecond',
  'largeClusterSizeThreshold',
  'unhealthyZoneThreshold',
  'podEvictionTimeoutSeconds',
  'automaticOutOfServiceAfterSeconds',
  'cloudYoungInstanceSeconds',
  'forceDetachTimeoutSeconds',
  'orphanQuarantineSeconds',
  'terminatedPodGcThreshold',
  'concurrentWatchesMax',
  'watchQuietSeconds',
  'percentageOfNodesToScore',
  'pendingPodAlarmSeconds',
  'workloadShortageAlarmSeconds',
  'nodesMarkedPerTickMax',
  'nodesQueuedPerZoneMax',
  'maxPlannedSilenceSeconds',
  'flapThreshold',
  'flapWindowSeconds',
  'flapStableSeconds',
] as const satisfies readonly (keyof Policy)[];
const WORDS = {
  fullDisruption: ['normal', 'hold'],
  ingestGate: ['on', 'off'],
  tickGate: ['on', 'off'],
  automaticOutOfService: ['off', 'stopped', 'terminated'],
  disableForceDetachOnTimeout: [true, false],
  podGcPeriodSeconds: [1, 2, 3, 4, 5, 6, 10, 12, 15, 20, 30, 60],
  unenforcedKinds: ['warn', 'refuse'],
  watchMode: ['stream', 'longPoll'],
  heartbeatUrl: ['on', 'off'],
  apiUrl: ['on', 'off'],
  scheduling: ['on', 'off'],
  preemption: ['on', 'off'],
  defaultTopologySpread: ['system', 'none'],
  schedulerGate: ['hold', 'off'],
  flapEffect: ['NoSchedule', 'PreferNoSchedule'],
} as const satisfies Partial<Record<keyof Policy, readonly (string | number | boolean)[]>>;

/** Above each field's own bound. */
const BOUND = 100_000_000;
/** Of fields with fractions. */
const STEP = 0.001;

const isAllowed = (field: keyof Policy, value: unknown): boolean => parsePolicy({ [field]: value }).kind === 'ok';

/** The last allowed value on the way from an allowed one, in steps. */
function lastAllowed(field: keyof Policy, from: number, direction: 1 | -1, step: number): number {
  const at = (steps: number): number => Number((from + direction * steps * step).toFixed(3));
  let allowed = 0;
  let refused = Math.ceil(BOUND / step);
  while (refused - allowed > 1) {
    const middle = Math.floor((allowed + refused) / 2);
    if (isAllowed(field, at(middle))) allowed = middle;
    else refused = middle;
  }
  return at(allowed);
}

function numberInput(field: (typeof NUMBERS)[number]): PolicyInput {
  const usual = defaultPolicy[field];
  const step = isAllowed(field, usual + STEP) || isAllowed(field, usual - STEP) ? STEP : 1;
  const [least, most] = [lastAllowed(field, usual, -1, step), lastAllowed(field, usual, 1, step)];
  return {
    rule: `must be a ${step === 1 ? 'whole ' : ''}number from ${least} to ${most}`,
    least,
    most,
    isWhole: step === 1,
  };
}

export const policyInputs = (): Readonly<Record<string, PolicyInput>> => ({
  ...Object.fromEntries(NUMBERS.map((field) => [field, numberInput(field)])),
  ...Object.fromEntries(
    Object.entries(WORDS).map(([field, values]) => [field, { rule: `must be one of ${values.join(', ')}`, values }]),
  ),
});
