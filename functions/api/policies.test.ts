import { describe, expect, it } from 'vitest';
import type { ResourceDescriptor } from '../../shared/kinds/descriptor.ts';
import { poddisruptionbudgets } from '../../shared/kinds/poddisruptionbudgets/serve.ts';
import { systemPriorityClasses } from '../../shared/kinds/priorityclasses/defaults.ts';
import { priorityclasses } from '../../shared/kinds/priorityclasses/serve.ts';
import { findResource, resources, storedAs } from '../../shared/kinds/registry.ts';
import { findStored } from '../../shared/kinds/resources.ts';
import type { KubeObject } from '../../shared/kinds/types.ts';
import { volumeattachments } from '../../shared/kinds/volumeattachments/serve.ts';
import { causeText } from '../../shared/kubernetes/status.ts';

const nowMs = 0;
const complaints = (descriptor: ResourceDescriptor, object: KubeObject, old?: KubeObject): string[] =>
  descriptor
    .validate(object, { operation: old === undefined ? 'create' : 'update', subresource: '', ...(old && { old }) })
    .map(causeText);

describe('budgets', () => {
  const metadata = { name: 'b-1', namespace: 'default' };
  const create = (spec: Record<string, unknown>): KubeObject =>
    poddisruptionbudgets.prepareForCreate({ metadata, spec }, { nowMs });

  it('count generations of their spec only', () => {
    const budget = create({ minAvailable: 1, selector: { matchLabels: { app: 'web' } } });
    expect(budget.metadata.generation).toBe(1);
    expect(budget.status).toEqual({ currentHealthy: 0, desiredHealthy: 0, disruptionsAllowed: 0, expectedPods: 0 });
    const update = (next: KubeObject, subresource: string): KubeObject =>
      poddisruptionbudgets.prepareForUpdate(next, budget, { nowMs, subresource });
    expect(update({ ...budget, spec: { minAvailable: 2 } }, '').metadata.generation).toBe(2);
    expect(update({ ...budget, metadata: { ...metadata, labels: { a: 'b' } } }, '').metadata.generation).toBe(1);
    expect(update({ ...budget, status: { disruptionsAllowed: 1 } }, 'status')).toMatchObject({
      metadata: { generation: 1 },
      status: { disruptionsAllowed: 1, expectedPods: 0 },
    });
  });

  it('show what they ask for', () => {
    expect(poddisruptionbudgets.row(create({ minAvailable: 1 }), nowMs)).toEqual(['b-1', '1', 'N/A', 0, '<unknown>']);
    expect(poddisruptionbudgets.row(create({ maxUnavailable: '25%' }), nowMs).slice(1, 3)).toEqual(['N/A', '25%']);
  });

  it.each([
    [{ minAvailable: 1, maxUnavailable: 1 }, /minAvailable and maxUnavailable cannot be both set/],
    [{ minAvailable: -1 }, /^spec\.minAvailable: Invalid value: -1: must be greater than or equal to 0/],
    [{ maxUnavailable: '101%' }, /must not be greater than 100%/],
    [{ maxUnavailable: 'some' }, /a valid percent string must be a numeric string/],
    [{ selector: { matchLabels: { a: 'b@d' } } }, /^spec\.selector\.matchLabels: Invalid value: "b@d"/],
    [{ selector: { matchExpressions: [{ key: 'a', operator: 'In' }] } }, /values: Required value/],
    [{ unhealthyPodEvictionPolicy: 'Maybe' }, /Unsupported value: "Maybe"/],
  ])('refuse %j', (spec, text) => {
    expect(complaints(poddisruptionbudgets, create(spec))).toEqual([expect.stringMatching(text)]);
  });
});

describe('priority classes', () => {
  const create = (fields: Record<string, unknown>, name = 'urgent'): KubeObject =>
    priorityclasses.prepareForCreate({ metadata: { name }, ...fields }, { nowMs });

  it('are stored as an API server prints them', () => {
    expect(create({ value: 1000, description: 'urgent work', globalDefault: false })).toEqual({
      apiVersion: 'scheduling.k8s.io/v1',
      kind: 'PriorityClass',
      metadata: { name: 'urgent', generation: 1 },
      description: 'urgent work',
      preemptionPolicy: 'PreemptLowerPriority',
      value: 1000,
    });
  });

  it('leave the highest values and the system names to the system', () => {
    expect(complaints(priorityclasses, create({ value: 1_000_000_001 }))).toEqual([
      'value: Forbidden: maximum allowed value of a user defined priority is 1000000000',
    ]);
    expect(complaints(priorityclasses, create({ value: 1 }, 'system-mine'))).toHaveLength(1);
    for (const systemClass of systemPriorityClasses()) expect(complaints(priorityclasses, systemClass)).toEqual([]);
  });

  it('keep their value', () => {
    const old = create({ value: 1 });
    const next = priorityclasses.prepareForUpdate({ ...old, value: 2 }, old, { nowMs, subresource: '' });
    expect(complaints(priorityclasses, next, old)).toEqual(['Value: Forbidden: may not be changed in an update.']);
  });

  it('show value and default', () => {
    expect(priorityclasses.row(create({ value: 7, globalDefault: true }), nowMs)).toEqual([
      'urgent',
      7,
      true,
      '<unknown>',
      'PreemptLowerPriority',
    ]);
  });
});

describe('volume attachments', () => {
  const spec = { attacher: 'ebs.csi.aws.com', nodeName: 'kw-1', source: { persistentVolumeName: 'pv-1' } };
  const create = (fields: Record<string, unknown>): KubeObject =>
    volumeattachments.prepareForCreate({ metadata: { name: 'va-1' }, ...fields }, { nowMs });

  it('start unattached, whatever they claim', () => {
    expect(create({ spec, status: { attached: true } }).status).toEqual({ attached: false });
    expect(volumeattachments.row(create({ spec }), nowMs)).toEqual([
      'va-1',
      'ebs.csi.aws.com',
      'pv-1',
      'kw-1',
      false,
      '<unknown>',
    ]);
  });

  it('say who attaches what to which node', () => {
    expect(complaints(volumeattachments, create({ spec }))).toEqual([]);
    expect(complaints(volumeattachments, create({ spec: {} }))).toEqual([
      'spec.attacher: Required value',
      expect.stringMatching(/^spec\.source: Required value/),
      'spec.nodeName: Required value',
      expect.stringMatching(/^spec\.attacher: Invalid value: "": a lowercase RFC 1123 subdomain/),
    ]);
  });

  it('keep their spec', () => {
    const old = create({ spec });
    const next = { ...old, spec: { ...spec, nodeName: 'kw-2' } };
    expect(complaints(volumeattachments, next, old)).toEqual([expect.stringMatching(/^spec: .*field is immutable$/)]);
  });
});

describe('the registry', () => {
  it('finds resources by group, version and name', () => {
    expect(findResource('coordination.k8s.io', 'v1', 'leases')?.kind).toBe('Lease');
    expect(findResource('batch', 'v1beta1', 'jobs')).toBeUndefined();
    expect(findStored('pods')?.shards).toBe(8);
  });

  it('stores both faces of events as one', () => {
    const newer = findResource('events.k8s.io', 'v1', 'events');
    expect(newer && storedAs(newer)).toBe(findResource('', 'v1', 'events'));
    expect(findStored('events')?.group).toBe('');
  });

  it('has one cell a column, and names no short name twice but that of events', () => {
    for (const each of resources) {
      expect(each.row({ metadata: { name: 'x' } }, nowMs)).toHaveLength(each.columns.length);
    }
    const shortNames = resources.filter((each) => each.servedFrom === undefined).flatMap((each) => each.shortNames);
    expect(new Set(shortNames).size).toBe(shortNames.length);
  });
});
