/** The `expect` of a step. */

import { readQuantity, readTaintPatterns } from './read-values.ts';
import type { NodeExpectation, PodExpectation, Quantity, WorkloadExpectation, ZoneExpectation } from './scenario.ts';
import { COUNTS, type CountExpectation, type EventExpectation, type Expectation } from './scenario.ts';
import {
  type Faults,
  readBoolean,
  readList,
  readMap,
  readText,
  readTextMap,
  readTexts,
  readWord,
  type Source,
} from './yaml-source.ts';

const STATUS_OR_ABSENT = ['True', 'False', 'Unknown', 'absent'] as const;
const ZONE_STATES = ['Initial', 'Normal', 'PartialDisruption', 'FullDisruption'] as const;

/** Each entry of an open map of patterns. */
function eachPattern<T>(source: Source | undefined, faults: Faults, read: (pattern: string, source: Source) => T): T[] {
  const fields = readMap(source, 'open', faults);
  return fields === undefined ? [] : [...fields].map(([pattern, field]) => read(pattern, field));
}

function readNode(pattern: string, source: Source, faults: Faults): NodeExpectation {
  const fields = readMap(
    source,
    [
      'exists',
      'ready',
      'reason',
      'unschedulable',
      'taints',
      'hasTaints',
      'lacksTaints',
      'podCIDRs',
      'labels',
      'conditions',
    ],
    faults,
  );
  return {
    pattern,
    line: source.line,
    exists: readBoolean(fields?.get('exists'), faults),
    ready: readWord(fields?.get('ready'), STATUS_OR_ABSENT, faults),
    reason: readText(fields?.get('reason'), faults),
    unschedulable: readBoolean(fields?.get('unschedulable'), faults),
    taints: readTaintPatterns(fields?.get('taints'), faults),
    hasTaints: readTaintPatterns(fields?.get('hasTaints'), faults),
    lacksTaints: readTaintPatterns(fields?.get('lacksTaints'), faults),
    podCIDRs: readTexts(fields?.get('podCIDRs'), faults),
    labels: readTextMap(fields?.get('labels'), faults),
    conditions: readConditions(fields?.get('conditions'), faults),
  };
}

function readConditions(source: Source | undefined, faults: Faults): NodeExpectation['conditions'] {
  const conditions = readMap(source, 'open', faults);
  return conditions === undefined
    ? undefined
    : Object.fromEntries(
        [...conditions].flatMap(([type, field]) => {
          const status = readWord(field, STATUS_OR_ABSENT, faults);
          return status === undefined ? [] : [[type, status] as const];
        }),
      );
}

const WORKLOAD = /^(deployment|replicaset|statefulset|daemonset|job) ([^ /]+)\/([^ /]+)$/;
const WORKLOAD_FIELDS = ['exists', 'ready', 'available', 'updated', 'pods', 'terminating', 'zones', 'conditions'];

function readWorkload(subject: string, source: Source, faults: Faults): WorkloadExpectation {
  const [, kind = '', namespace = '', name = ''] = WORKLOAD.exec(subject) ?? [];
  if (kind === '') faults.add(source, 'expected a kind and namespace/name, as in "deployment default/web"');
  const fields = readMap(source, WORKLOAD_FIELDS, faults);
  const quantity = (field: string): Quantity | undefined => readQuantity(fields?.get(field), 'number', faults);
  const zones = readMap(fields?.get('zones'), 'open', faults);
  return {
    subject,
    resource: `${kind}s`,
    namespace,
    name,
    line: source.line,
    exists: readBoolean(fields?.get('exists'), faults),
    ready: quantity('ready'),
    available: quantity('available'),
    updated: quantity('updated'),
    pods: quantity('pods'),
    terminating: quantity('terminating'),
    zones:
      zones === undefined
        ? undefined
        : Object.fromEntries(
            [...zones].flatMap(([zone, field]) => {
              const wanted = readQuantity(field, 'number', faults);
              return wanted === undefined ? [] : [[zone, wanted] as const];
            }),
          ),
    conditions: readConditions(fields?.get('conditions'), faults),
  };
}

const isNullIn = (source: Source | undefined): boolean => source?.kind === 'scalar' && source.value === null;

function readPod(pattern: string, source: Source, faults: Faults): PodExpectation {
  if (!pattern.includes('/')) faults.add(source, 'expected namespace/name, or a glob of it');
  const fields = readMap(source, ['exists', 'deleting', 'phase', 'ready', 'node', 'evictionDueIn'], faults);
  const due = fields?.get('evictionDueIn');
  return {
    pattern,
    line: source.line,
    exists: readBoolean(fields?.get('exists'), faults),
    deleting: readBoolean(fields?.get('deleting'), faults),
    phase: readText(fields?.get('phase'), faults),
    ready: readWord(fields?.get('ready'), STATUS_OR_ABSENT, faults),
    node: isNullIn(fields?.get('node')) ? 'none' : readText(fields?.get('node'), faults),
    evictionDueIn: isNullIn(due) ? 'none' : readQuantity(due, 'duration', faults),
  };
}

function readZone(zone: string, source: Source, faults: Faults): ZoneExpectation {
  const fields = readMap(source, ['state', 'evictionRatePerSecond', 'queued'], faults);
  return {
    zone,
    line: source.line,
    state: readWord(fields?.get('state'), ZONE_STATES, faults),
    evictionRatePerSecond: readQuantity(fields?.get('evictionRatePerSecond'), 'number', faults),
    queued: readQuantity(fields?.get('queued'), 'number', faults),
  };
}

function readCounts(source: Source | undefined, faults: Faults): CountExpectation[] {
  const fields = readMap(source, COUNTS, faults);
  return COUNTS.flatMap((count) => {
    const field = fields?.get(count);
    const wanted = readQuantity(field, 'number', faults);
    return field === undefined || wanted === undefined ? [] : [{ count, wanted, line: field.line }];
  });
}

function readEvent(source: Source, faults: Faults): EventExpectation {
  const fields = readMap(source, ['kind', 'name', 'reason', 'count'], faults);
  return {
    line: source.line,
    kind: readText(fields?.get('kind'), faults),
    name: readText(fields?.get('name'), faults),
    reason: readText(fields?.get('reason'), faults),
    count: readQuantity(fields?.get('count'), 'number', faults),
  };
}

export function readExpectation(source: Source, faults: Faults): Expectation {
  const fields = readMap(source, ['nodes', 'pods', 'workloads', 'zones', 'counts', 'events'], faults);
  return {
    nodes: eachPattern(fields?.get('nodes'), faults, (pattern, field) => readNode(pattern, field, faults)),
    pods: eachPattern(fields?.get('pods'), faults, (pattern, field) => readPod(pattern, field, faults)),
    workloads: eachPattern(fields?.get('workloads'), faults, (name, field) => readWorkload(name, field, faults)),
    zones: eachPattern(fields?.get('zones'), faults, (zone, field) => readZone(zone, field, faults)),
    counts: readCounts(fields?.get('counts'), faults),
    events: (readList(fields?.get('events'), faults) ?? []).map((event) => readEvent(event, faults)),
  };
}
