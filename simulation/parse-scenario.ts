/** A scenario file, checked as a whole: every fault with its line and field, or a scenario that can be run. */
import { parsePolicy } from '../shared/config/policy.ts';
import { defaultPolicy, type Policy } from '../shared/fleet/policy.ts';
import { parseTimeMs } from '../shared/kubernetes/time.ts';
import { readFleet } from './parse-fleet.ts';
import { readSteps } from './parse-steps.ts';
import type { Scenario } from './scenario.ts';
import {
  type Faults,
  faultsOf,
  plainOf,
  readMap,
  readText,
  readWord,
  type ScenarioFault,
  type Source,
  saidOf,
  sourceOf,
} from './yaml-source.ts';

export type ParsedScenario =
  | { readonly kind: 'ok'; readonly scenario: Scenario }
  | { readonly kind: 'faults'; readonly faults: readonly ScenarioFault[] };

const DEFAULT_START_MS = Date.UTC(2026, 0, 1);
/** Time between beats unless a group says otherwise. */
const BEAT_EVERY_MS = 10_000;

/** Validates the fields of the policy and their relations. An error has the line of its field. */
function readPolicy(source: Source | undefined, faults: Faults): Policy {
  const fields = readMap(source, 'open', faults);
  if (source === undefined || fields === undefined) return defaultPolicy;
  const parsed = parsePolicy(plainOf(source));
  if (parsed.kind === 'ok') return parsed.policy;
  for (const { field, other, rule } of parsed.faults) {
    const at = fields.get(field) ?? (other === undefined ? undefined : fields.get(other)) ?? source;
    faults.add(at, `${field} ${rule}`, saidOf(at));
  }
  return defaultPolicy;
}

function readStartMs(source: Source | undefined, faults: Faults): number {
  if (source === undefined) return DEFAULT_START_MS;
  const startMs = parseTimeMs(readText(source, faults));
  if (startMs === undefined) faults.add(source, 'expected a time such as 2026-01-01T00:00:00Z', saidOf(source));
  return startMs ?? DEFAULT_START_MS;
}

/** @param file as it should appear in faults */
export function parseScenario(text: string, file: string): ParsedScenario {
  const faults = faultsOf(file);
  const root = sourceOf(text, faults);
  const fields = readMap(root, ['apiVersion', 'kind', 'metadata', 'spec'], faults);
  if (root === undefined || fields === undefined) return { kind: 'faults', faults: faults.all };
  for (const name of ['apiVersion', 'kind', 'metadata', 'spec']) {
    if (!fields.has(name)) faults.add(root, `expected the field ${name}`);
  }
  readWord(fields.get('apiVersion'), ['nodekeeper.dev/v1alpha1'], faults);
  readWord(fields.get('kind'), ['Scenario'], faults);
  const name = readText(readMap(fields.get('metadata'), 'open', faults)?.get('name'), faults);
  if (name === undefined && fields.has('metadata')) faults.add(fields.get('metadata')!, 'expected the field name');
  const spec = readMap(fields.get('spec'), ['start', 'policy', 'fleet', 'steps'], faults);
  const defaults = { beatEveryMs: BEAT_EVERY_MS };
  const policy = readPolicy(spec?.get('policy'), faults);
  const startMs = readStartMs(spec?.get('start'), faults);
  const machines = readFleet(spec?.get('fleet'), defaults, faults);
  const names = machines.map((machine) => machine.name);
  const steps = readSteps(spec?.get('steps'), names, defaults, faults);
  if (faults.all.length > 0 || name === undefined) {
    return { kind: 'faults', faults: [...faults.all].sort((one, other) => one.line - other.line) };
  }
  return { kind: 'ok', scenario: { file, name, startMs, policy, machines, steps } };
}
