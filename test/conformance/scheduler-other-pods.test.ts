/**
 * SS, SI: topology spread with DoNotSchedule, and required affinity between pods. By the API, the streams and the
 * scheduler.
 */
import { describe, expect, it } from 'vitest';
import type { PodAffinityTerm, TopologySpreadConstraint } from '../../shared/kinds/types.ts';
import { type NodeParts, type PodParts, ScheduledCluster } from '../support/scheduled-cluster.ts';

const HOSTNAME = 'kubernetes.io/hostname';
const ZONE = 'topology.kubernetes.io/zone';
const SKEWED = "node(s) didn't match pod topology spread constraints";
const WITHOUT_LABEL = `${SKEWED} (missing required label)`;
const FOO = { foo: '' };

const zones = (...list: (string | undefined)[]): Record<string, NodeParts> =>
  Object.fromEntries(list.map((zone, index) => [`n${index + 1}`, zone === undefined ? {} : { zone }]));

async function cluster(nodes: Readonly<Record<string, NodeParts>>): Promise<ScheduledCluster> {
  const made = new ScheduledCluster();
  for (const [name, parts] of Object.entries(nodes)) await made.node(name, parts);
  return made;
}

/** So many pods with these labels on n1, n2 … */
async function counts(on: ScheduledCluster, numbers: readonly number[], labels: Record<string, string> = FOO) {
  for (const [index, number] of numbers.entries()) {
    for (let each = 0; each < number; each += 1) {
      await on.running(`${Object.keys(labels).join('-')}-${index + 1}-${each}`, `n${index + 1}`, { labels });
    }
  }
}

const constraint = (topologyKey: string, more: Partial<TopologySpreadConstraint> = {}): TopologySpreadConstraint => ({
  maxSkew: 1,
  topologyKey,
  whenUnsatisfiable: 'DoNotSchedule',
  labelSelector: { matchExpressions: [{ key: 'foo', operator: 'Exists' }] },
  ...more,
});
const spread = (...topologySpreadConstraints: TopologySpreadConstraint[]): PodParts => ({
  labels: FOO,
  spec: { topologySpreadConstraints },
});

async function placed(on: ScheduledCluster, parts: PodParts): Promise<string> {
  await on.pod('p', parts);
  await on.settle();
  const { namespace } = parts;
  return (await on.nodeOf('p', namespace)) || `waits: ${await on.reasons('p', namespace)}`;
}

describe('SS topology spread, DoNotSchedule', () => {
  it('SS-01 empty zones accept the first pod', async () => {
    const on = await cluster(zones('a', 'a', 'b', 'b'));
    expect(await on.feasible(spread(constraint(ZONE)))).toEqual(['n1', 'n2', 'n3', 'n4']);
  });

  it('SS-03: an absent selector selects nothing', async () => {
    const on = await cluster(zones('a', 'a', 'b', 'b'));
    await counts(on, [0, 0, 1, 1]);
    const { labelSelector: _, ...bare } = constraint(ZONE);
    expect(await on.feasible(spread(bare))).toEqual(['n1', 'n2', 'n3', 'n4']);
  });

  it('SS-05: a node without the label is no candidate', async () => {
    const on = await cluster(zones('a', undefined, 'b', 'b'));
    await counts(on, [1, 1, 1, 1]);
    const parts = spread(constraint(ZONE));
    expect(await on.feasible(parts)).toEqual(['n1']);
    await placed(on, parts);
    expect(await on.rejected('p')).toEqual({ [WITHOUT_LABEL]: 1, [SKEWED]: 2 });
  });

  it('SS-07 the host with the fewest pods', async () => {
    const on = await cluster(zones('a', 'a', 'b', 'b'));
    await counts(on, [2, 1, 0, 3]);
    expect(await on.feasible(spread(constraint(HOSTNAME)))).toEqual(['n3']);
  });

  it('SS-09: a pod that does not match itself adds nothing', async () => {
    const on = await cluster(zones('a', 'a', 'b', 'b'));
    await counts(on, [2, 1, 0, 3]);
    expect(await on.feasible({ ...spread(constraint(HOSTNAME)), labels: {} })).toEqual(['n2', 'n3']);
  });

  it('SS-11: a terminating pod does not count', async () => {
    const on = await cluster(zones('a', 'b'));
    await counts(on, [1, 1]);
    await on.send('DELETE', '/api/v1/namespaces/default/pods/foo-1-0');
    expect(await on.feasible(spread(constraint(HOSTNAME)))).toEqual(['n1']);
  });

  it('SS-13 fewer domains than minDomains: the minimum is 0', async () => {
    const on = await cluster(zones('a', 'a', 'a'));
    await counts(on, [2, 2, 1]);
    expect(await on.feasible(spread(constraint(HOSTNAME, { maxSkew: 2, minDomains: 4 })))).toEqual(['n3']);
  });

  it('SS-15 also by zone', async () => {
    const on = await cluster(zones('a', 'a', 'b', 'b'));
    await counts(on, [2, 0, 1, 0]);
    expect(await on.feasible(spread(constraint(ZONE, { maxSkew: 2, minDomains: 3 })))).toEqual(['n3', 'n4']);
  });

  it('SS-17 nodes that the selector excludes are no domain', async () => {
    const foo = { labels: { foo: '' } };
    const on = await cluster({ n1: foo, n2: foo, n3: foo, n4: {} });
    await counts(on, [1, 1, 0, 1]);
    const parts = spread(constraint(HOSTNAME));
    expect(await on.feasible({ ...parts, spec: { ...parts.spec, nodeSelector: { foo: '' } } })).toEqual(['n3']);
  });

  it('SS-19 taints are ignored by default, so a tainted node is a domain', async () => {
    const on = await cluster({
      ...zones('a', 'a', 'a'),
      n4: { taints: [{ key: 'k', value: 'v', effect: 'NoSchedule' }] },
    });
    await counts(on, [1, 1, 1, 0]);
    expect(await placed(on, spread(constraint(HOSTNAME)))).toBe(
      `waits: 1 node(s) had untolerated taint(s), 3 ${SKEWED}.`,
    );
  });

  it('SS-21 two constraints', async () => {
    const on = await cluster(zones('a', 'a', 'b', 'b'));
    await counts(on, [2, 1, 0, 3]);
    expect(await on.feasible(spread(constraint(ZONE), constraint(HOSTNAME)))).toEqual(['n3']);
  });

  it('SS-23 two constraints over different labels', async () => {
    const on = await cluster(zones('a', 'a', 'b', 'b'));
    await counts(on, [1, 0, 0, 0]);
    await counts(on, [0, 0, 0, 1], { bar: '' });
    const bar = { labelSelector: { matchExpressions: [{ key: 'bar', operator: 'Exists' }] } };
    const parts = spread(constraint(ZONE), constraint(HOSTNAME, bar));
    expect(await on.feasible({ ...parts, labels: { foo: '', bar: '' } })).toEqual(['n3']);
  });

  it('SS-25: a node needs the labels of all constraints', async () => {
    const on = await cluster(zones('a', 'a', 'b', 'b'));
    await on.patchNode('n3', { metadata: { labels: { [HOSTNAME]: null } } });
    await counts(on, [1, 0, 0, 1]);
    const parts = spread(constraint(ZONE), constraint(HOSTNAME));
    expect(await on.feasible(parts)).toEqual(['n2']);
    await placed(on, parts);
    expect((await on.rejected('p'))[WITHOUT_LABEL]).toBe(1);
  });

  it('SS-27 matchLabelKeys restrict the selector to the own value', async () => {
    const on = await cluster(zones('a', 'b', 'c'));
    await counts(on, [2, 2, 0], { app: 'web', rev: '1' });
    const own = { labelSelector: { matchLabels: { app: 'web' } }, matchLabelKeys: ['rev'] };
    const parts = spread(constraint(ZONE, own));
    expect(await on.feasible({ ...parts, labels: { app: 'web', rev: '2' } })).toEqual(['n1', 'n2', 'n3']);
  });
});

type Expression = [key: string, operator: 'In' | 'NotIn' | 'Exists' | 'DoesNotExist', values?: string[]];
const term = (
  topologyKey: string,
  expressions: Expression[],
  more: Partial<PodAffinityTerm> = {},
): PodAffinityTerm => ({
  topologyKey,
  labelSelector: {
    matchExpressions: expressions.map(([key, operator, values]) => ({ key, operator, ...(values && { values }) })),
  },
  ...more,
});
const requiring = (
  { affinity = [], anti = [] }: { affinity?: PodAffinityTerm[]; anti?: PodAffinityTerm[] },
  labels: Record<string, string> = {},
): PodParts => ({
  labels,
  spec: {
    affinity: {
      ...(affinity.length > 0 && { podAffinity: { requiredDuringSchedulingIgnoredDuringExecution: affinity } }),
      ...(anti.length > 0 && { podAntiAffinity: { requiredDuringSchedulingIgnoredDuringExecution: anti } }),
    },
  },
});
const SCAN: Expression = ['svc', 'In', ['scan']];
const ONE = { n1: { labels: { region: 'r1', zone: 'z11' } } };
const NO_AFFINITY = "waits: 1 node(s) didn't match pod affinity rules.";
const OWN_ANTI = "waits: 1 node(s) didn't match pod anti-affinity rules.";
const EXISTING_ANTI = "waits: 1 node(s) didn't satisfy existing pods anti-affinity rules.";
const svc = { svc: 'scan' };

/** One node with a pod e. */
async function beside(existing: PodParts): Promise<ScheduledCluster> {
  const on = await cluster(ONE);
  if (existing.namespace !== undefined) await on.namespace(existing.namespace);
  await on.running('e', 'n1', existing);
  return on;
}

describe('SI affinity between pods', () => {
  it('SI-01 affinity', async () => {
    const on = await beside({ labels: svc });
    expect(await placed(on, requiring({ affinity: [term('region', [['svc', 'In', ['scan', 'v2']]])] }))).toBe('n1');
  });

  it('SI-03 pods of other namespaces do not match', async () => {
    const on = await beside({ labels: svc, namespace: 'ns' });
    const affinity = [term('region', [SCAN], { namespaces: ['other'] })];
    expect(await placed(on, requiring({ affinity }))).toBe(NO_AFFINITY);
  });

  it('SI-05 two terms', async () => {
    const on = await beside({ labels: svc });
    const affinity = [
      term('region', [
        ['svc', 'Exists'],
        ['wrong', 'DoesNotExist'],
      ]),
      term('region', [SCAN, ['svc', 'NotIn', ['x']]]),
    ];
    expect(await placed(on, requiring({ affinity }))).toBe('n1');
  });

  it('SI-07 affinity and anti-affinity', async () => {
    const on = await beside({ labels: svc });
    const parts = requiring({
      affinity: [term('region', [SCAN])],
      anti: [term(HOSTNAME, [['svc', 'In', ['antivirus']]])],
    });
    expect(await placed(on, parts)).toBe('n1');
  });

  it('SI-09 anti-affinity of an existing pod', async () => {
    const on = await beside(requiring({ anti: [term('zone', [SCAN])] }, svc));
    expect(await placed(on, { labels: svc })).toBe(EXISTING_ANTI);
  });

  it('SI-11 own anti-affinity is reported first', async () => {
    const on = await beside(requiring({ anti: [term('zone', [['security', 'Exists']])] }, { security: 'S1' }));
    const anti = [term('region', [['svc', 'Exists']]), term('region', [['security', 'Exists']])];
    expect(await placed(on, requiring({ anti }, svc))).toBe(OWN_ANTI);
  });

  it('SI-13 also when both reject', async () => {
    const anti = [term('zone', [['abc', 'Exists']]), term('zone', [['def', 'Exists']])];
    const on = await beside(requiring({ anti }, { def: '', xyz: '' }));
    expect(await placed(on, requiring({ anti }, { abc: '', xyz: '' }))).toBe(OWN_ANTI);
  });

  it('SI-15: a namespace selector', async () => {
    const on = await cluster(ONE);
    await on.namespace('t1a', { team: 't1' });
    await on.namespace('t1b', { team: 't1' });
    await on.namespace('t2a', { team: 't2' });
    await on.running('e', 'n1', { labels: svc, namespace: 't1b' });
    const affinity = [term('region', [SCAN], { namespaceSelector: { matchLabels: { team: 't1' } } })];
    expect(await placed(on, { ...requiring({ affinity }), namespace: 't1a' })).toBe('n1');
  });

  it('SI-17: an empty namespace selector selects all namespaces', async () => {
    const on = await cluster(ONE);
    await on.namespace('t1a');
    await on.namespace('t1b');
    await on.running('e', 'n1', { labels: svc, namespace: 't1b' });
    const anti = [term('zone', [SCAN], { namespaceSelector: {} })];
    expect(await placed(on, { ...requiring({ anti }), namespace: 't1a' })).toBe(OWN_ANTI);
  });

  it('SI-19 all nodes of the domain', async () => {
    const on = await cluster({
      n1: { labels: { region: 'c' } },
      n2: { labels: { region: 'c', az: '1' } },
      n3: { labels: { region: 'i' } },
    });
    await on.running('e', 'n1', { labels: { foo: 'bar' } });
    const parts = requiring({ affinity: [term('region', [['foo', 'In', ['bar']]])] });
    expect(await on.feasible(parts)).toEqual(['n1', 'n2']);
    await placed(on, parts);
    expect(await on.rejected('p')).toEqual({ "node(s) didn't match pod affinity rules": 1 });
  });

  it('SI-21 the first pod of its kind needs the keys too', async () => {
    const on = await cluster({ n1: { labels: { zoneLabel: '1' } }, n2: { labels: { zoneLabel: '2' } } });
    await on.running('e', 'n1', { labels: { foo: 'bar' } });
    const affinity = [term('zone', [['foo', 'In', ['bar']]]), term('zone', [SCAN])];
    expect(await on.feasible(requiring({ affinity }, { foo: 'bar', svc: 'scan' }))).toEqual([]);
  });

  it('SI-23 any anti-affinity term rejects', async () => {
    const on = await cluster({
      n1: { labels: { region: 'r1', zone: 'z1' } },
      n2: { labels: { region: 'r1', zone: 'z2' } },
    });
    await on.running('e', 'n1', { labels: { foo: 'abc', svc: 'scan' } });
    const anti = [term('region', [['foo', 'In', ['abc']]]), term('zone', [SCAN])];
    expect(await on.feasible(requiring({ anti }))).toEqual([]);
  });

  it('SI-25 anti-affinity on a key that no node has', async () => {
    const on = await cluster({ n1: {}, n2: {} });
    await on.running('e', 'n1', requiring({ anti: [term('nope', [['foo', 'Exists']])] }));
    expect(await on.feasible({ labels: FOO })).toEqual(['n1', 'n2']);
  });

  it('SI-27 several existing pods with several terms', async () => {
    const on = await cluster({
      n1: { labels: { zone: 'z1' } },
      n2: { labels: { zone: 'z2' } },
      n3: { labels: { zone: 'z3' } },
    });
    const against = (...keys: string[]) => requiring({ anti: keys.map((key) => term('zone', [[key, 'Exists']])) });
    await on.running('e1', 'n1', against('foo', 'la'));
    await on.running('e2', 'n2', against('bar', 'lb'));
    expect(await on.feasible({ labels: { foo: '', bar: '' } })).toEqual(['n3']);
  });

  it('SI-29: a terminating pod counts until it is removed', async () => {
    const on = await beside({ labels: FOO });
    await on.send('DELETE', '/api/v1/namespaces/default/pods/e');
    const parts = requiring({ anti: [term(HOSTNAME, [['foo', 'Exists']])] });
    expect(await placed(on, parts)).toBe(OWN_ANTI);
    await on.remove('e');
    await on.settle();
    await on.at(2);
    expect(await on.nodeOf('p')).toBe('n1');
  });
});
