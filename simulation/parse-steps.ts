/** The steps of a scenario: one verb each. */
import { parseAllDocuments } from 'yaml';
import type { KubeObject } from '../shared/kinds/types.ts';
import type { ConditionStatus } from '../shared/kubernetes/kubernetes.ts';
import { isGlob, pickNames } from './glob.ts';
import { readExpectation } from './parse-expectation.ts';
import { type MachineDefaults, readMachine } from './parse-fleet.ts';
import { readDurationMs, readTaintPatterns, readTaints } from './read-values.ts';
import { type MachineSpec, type ObjectName, PROPAGATION_POLICIES, type Step, type StepAction } from './scenario.ts';
import {
  type Faults,
  type Fields,
  plainOf,
  readBoolean,
  readList,
  readMap,
  readNumber,
  readText,
  readTexts,
  readWord,
  type Source,
  saidOf,
} from './yaml-source.ts';

const STATUSES = ['True', 'False', 'Unknown'] as const;
const DEFAULT_NAMESPACE = 'default';

/** Names known at this step. A glob that matches none of them is an error with its line. */
interface Known {
  readonly machines: Set<string>;
  readonly nodes: Set<string>;
}

interface Reader {
  readonly faults: Faults;
  readonly known: Known;
  readonly defaults: MachineDefaults;
}

type ReadVerb = (source: Source, reader: Reader) => StepAction | undefined;

function readNames(source: Source | undefined, known: Iterable<string>, reader: Reader, plainToo: boolean): string[] {
  const names = readTexts(source, reader.faults) ?? [];
  const all = [...known];
  for (const name of names) {
    if ((plainToo || isGlob(name)) && source !== undefined && pickNames([name], all).length === 0) {
      reader.faults.add(itemOf(source, name), 'expected a name or glob that matches a node', JSON.stringify(name));
    }
  }
  return names;
}

/** Where a name of a list stands. */
const itemOf = (source: Source, name: string): Source =>
  (source.kind === 'list' ? source.items.find((item) => item.kind === 'scalar' && item.text === name) : undefined) ??
  source;

function readStatus(source: Source, reader: Reader): StepAction | undefined {
  const { faults, known } = reader;
  const fields = readMap(source, ['names', 'conditions'], faults);
  const names = readNames(required(fields, 'names', source, faults), known.machines, reader, true);
  const conditions: Record<string, ConditionStatus> = {};
  for (const [type, field] of readMap(required(fields, 'conditions', source, faults), 'open', faults) ?? []) {
    const status = readWord(field, STATUSES, faults);
    if (status !== undefined) conditions[type] = status;
  }
  return { verb: 'status', names, conditions };
}

function required(fields: Fields | undefined, name: string, source: Source, faults: Faults): Source | undefined {
  const field = fields?.get(name);
  if (fields !== undefined && field === undefined) faults.add(source, `expected the field ${name}`);
  return field;
}

function readBeat(source: Source, reader: Reader): StepAction | undefined {
  const { faults, known, defaults } = reader;
  const items = source.kind === 'scalar' ? [source] : readList(source, faults);
  if (items === undefined) return undefined;
  const machines: (string | MachineSpec)[] = [];
  for (const item of items) {
    if (item.kind === 'map') {
      const machine = readMachine(item, defaults, faults);
      if (machine === undefined) continue;
      machines.push(machine);
      known.machines.add(machine.name);
      known.nodes.add(machine.name);
      continue;
    }
    const name = readText(item, faults, 'expected a name, or {name, zone, labels, taints}');
    if (name === undefined) continue;
    machines.push(name);
    if (!isGlob(name)) {
      known.machines.add(name);
      known.nodes.add(name);
    } else if (pickNames([name], [...known.machines]).length === 0) {
      faults.add(item, 'expected a glob that matches a machine', JSON.stringify(name));
    }
  }
  return { verb: 'beat', machines };
}

function objectsOf(source: Source, faults: Faults): KubeObject[] {
  if (source.kind === 'list') return source.items.flatMap((item) => objectsOf(item, faults));
  if (source.kind === 'scalar' && typeof source.value === 'string') {
    const documents = parseAllDocuments(source.value);
    const error = 'empty' in documents ? undefined : documents.flatMap(({ errors }) => errors)[0];
    if (error !== undefined) faults.add(source, 'expected a manifest as YAML', error.message.split('\n', 1)[0]);
    return 'empty' in documents || error !== undefined
      ? []
      : documents.map((document) => document.toJS() as KubeObject);
  }
  const fields = readMap(source, 'open', faults);
  if (fields === undefined) return [];
  for (const name of ['apiVersion', 'kind', 'metadata']) required(fields, name, source, faults);
  return [plainOf(source) as KubeObject];
}

function readApply(source: Source, { faults, known }: Reader): StepAction {
  const objects = objectsOf(source, faults);
  for (const { kind, metadata } of objects) if (kind === 'Node' && metadata?.name) known.nodes.add(metadata.name);
  return { verb: 'apply', objects };
}

function readObjectName(fields: Fields | undefined, source: Source, reader: Reader): ObjectName {
  const { faults, known } = reader;
  const kind = readText(required(fields, 'kind', source, faults), faults) ?? '';
  const nameSource = required(fields, 'name', source, faults);
  const name = readText(nameSource, faults) ?? '';
  if (kind === 'Node' && nameSource !== undefined && isGlob(name)) readNames(nameSource, known.nodes, reader, false);
  return { kind, name, namespace: readText(fields?.get('namespace'), faults) ?? '' };
}

function readPatch(source: Source, reader: Reader): StepAction {
  const fields = readMap(source, ['kind', 'name', 'namespace', 'merge'], reader.faults);
  const merge = required(fields, 'merge', source, reader.faults);
  readMap(merge, 'open', reader.faults);
  return {
    verb: 'patch',
    target: readObjectName(fields, source, reader),
    merge: merge === undefined ? {} : (plainOf(merge) as Record<string, unknown>),
  };
}

function readDelete(source: Source, reader: Reader): StepAction {
  const names = ['kind', 'name', 'namespace', 'gracePeriodSeconds', 'propagationPolicy'];
  const fields = readMap(source, names, reader.faults);
  return {
    verb: 'delete',
    target: readObjectName(fields, source, reader),
    gracePeriodSeconds: readNumber(fields?.get('gracePeriodSeconds'), reader.faults, {
      least: 0,
      most: 31_536_000,
      whole: true,
      what: 'whole seconds',
    }),
    propagationPolicy: readWord(fields?.get('propagationPolicy'), PROPAGATION_POLICIES, reader.faults),
  };
}

function readEvict(source: Source, { faults }: Reader): StepAction {
  const fields = readMap(source, ['pod', 'namespace'], faults);
  return {
    verb: 'evict',
    pod: readText(required(fields, 'pod', source, faults), faults) ?? '',
    namespace: readText(fields?.get('namespace'), faults) ?? DEFAULT_NAMESPACE,
  };
}

function readTaint(source: Source, reader: Reader): StepAction {
  const { faults, known } = reader;
  const fields = readMap(source, ['names', 'add', 'remove'], faults);
  const names = readNames(required(fields, 'names', source, faults), known.nodes, reader, false);
  const add = readTaints(fields?.get('add'), faults) ?? [];
  const remove = readTaintPatterns(fields?.get('remove'), faults, { effectOptional: true }) ?? [];
  if (fields !== undefined && !fields.has('add') && !fields.has('remove')) faults.add(source, 'expected add or remove');
  return { verb: 'taint', names, add, remove };
}

const INSTANCE_WORDS = ['terminate', 'stop', 'start', 'vanish'] as const;

function readCloud(source: Source, reader: Reader): StepAction | undefined {
  const { faults, known } = reader;
  const fields = readMap(source, [...INSTANCE_WORDS, 'error'], faults);
  if (fields === undefined) return undefined;
  if (fields.size !== 1) {
    faults.add(source, `expected one of ${INSTANCE_WORDS.join(', ')} or error`);
    return undefined;
  }
  const error = fields.get('error');
  if (error !== undefined) {
    const isNull = error.kind === 'scalar' && error.value === null;
    return { verb: 'cloud', change: { kind: 'error', error: isNull ? undefined : readText(error, faults) } };
  }
  const say = INSTANCE_WORDS.find((word) => fields.has(word));
  if (say === undefined) return undefined;
  const nodes = readNames(fields.get(say), known.nodes, reader, true);
  return { verb: 'cloud', change: { kind: 'instances', say, nodes } };
}

const VERBS: Readonly<Record<StepAction['verb'], ReadVerb>> = {
  silence: (source, reader) => ({ verb: 'silence', names: readNames(source, reader.known.machines, reader, true) }),
  beat: readBeat,
  status: readStatus,
  apply: readApply,
  patch: readPatch,
  delete: readDelete,
  evict: readEvict,
  taint: readTaint,
  cordon: (source, reader) => ({ verb: 'cordon', names: readNames(source, reader.known.nodes, reader, false) }),
  uncordon: (source, reader) => ({ verb: 'uncordon', names: readNames(source, reader.known.nodes, reader, false) }),
  drain: (source, reader) => ({ verb: 'drain', names: readNames(source, reader.known.nodes, reader, false) }),
  cloud: readCloud,
  controllers: (source, { faults }) => {
    const fields = readMap(source, ['down'], faults);
    const down = readBoolean(required(fields, 'down', source, faults), faults);
    return down === undefined ? undefined : { verb: 'controllers', down };
  },
  ingest: (source, { faults }) => {
    const fields = readMap(source, ['failShare'], faults);
    const failShare = readNumber(required(fields, 'failShare', source, faults), faults, {
      least: 0,
      most: 1,
      whole: false,
      what: 'a share from 0 to 1',
    });
    return failShare === undefined ? undefined : { verb: 'ingest', failShare };
  },
  agentShutdown: () => ({ verb: 'agentShutdown' }),
  expect: (source, { faults }) => ({ verb: 'expect', expectation: readExpectation(source, faults) }),
};
const VERB_NAMES = Object.keys(VERBS) as readonly StepAction['verb'][];

function readStep(source: Source, reader: Reader): Step | undefined {
  const { faults } = reader;
  const fields = readMap(source, ['at', 'refused', ...VERB_NAMES], faults);
  if (fields === undefined) return undefined;
  const atMs = readDurationMs(required(fields, 'at', source, faults), faults);
  const refused = readNumber(fields.get('refused'), faults, {
    least: 400,
    most: 599,
    whole: true,
    what: 'an HTTP status from 400 to 599',
  });
  const verbs = VERB_NAMES.filter((verb) => fields.has(verb));
  const [verb] = verbs;
  if (verb === undefined || verbs.length > 1) {
    const found = verb === undefined ? 'none' : verbs.join(' and ');
    faults.add(source, `expected exactly one of ${VERB_NAMES.join(', ')}`, found);
    return undefined;
  }
  const action = VERBS[verb](fields.get(verb)!, reader);
  return action === undefined || atMs === undefined ? undefined : { ...action, atMs, refused, line: source.line };
}

/** @param machineNames the fleet's, from the start */
export function readSteps(
  source: Source | undefined,
  machineNames: readonly string[],
  defaults: MachineDefaults,
  faults: Faults,
): Step[] {
  const items = readList(source, faults) ?? [];
  const known = { machines: new Set(machineNames), nodes: new Set(machineNames) };
  const steps: Step[] = [];
  let latestMs = 0;
  for (const item of items) {
    const step = readStep(item, { faults, known, defaults });
    if (step === undefined) continue;
    steps.push(step);
    if (step.atMs < latestMs) {
      const at = item.kind === 'map' ? item.fields.get('at') : undefined;
      faults.add(at ?? item, 'expected a time not before that of the step above', saidOf(at ?? item));
    }
    latestMs = Math.max(latestMs, step.atMs);
  }
  return steps;
}
