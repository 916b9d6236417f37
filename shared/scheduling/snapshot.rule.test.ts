import { describe, expect, it } from 'vitest';
import type { KubeNode, KubePod } from '../kinds/types.ts';
import { Snapshot } from './snapshot.rule.ts';
import { schedulableNode, schedulablePod } from './world.rule.ts';

const node = (name: string, { zone = '', images = [] as readonly string[] } = {}) =>
  schedulableNode({
    metadata: { name, labels: zone === '' ? {} : { 'topology.kubernetes.io/zone': zone } },
    status: {
      conditions: [{ type: 'Ready', status: 'True' }],
      allocatable: { cpu: '4', pods: '9' },
      images: images.map((image) => ({ names: [image], sizeBytes: 1 })),
    },
  } as unknown as KubeNode);

interface Parts {
  readonly nodeName?: string;
  readonly labels?: Readonly<Record<string, string>>;
  readonly nominated?: string;
  readonly hostPort?: number;
  readonly affinity?: object;
  readonly phase?: string;
  readonly cpu?: string;
}
const pod = (name: string, { nodeName, labels = {}, nominated, hostPort, affinity, phase, cpu = '1' }: Parts = {}) =>
  schedulablePod({
    metadata: { namespace: 'd', name, uid: name, labels },
    spec: {
      nodeName,
      affinity,
      containers: [
        {
          name: 'c',
          resources: { requests: { cpu, memory: '10' } },
          ...(hostPort === undefined ? {} : { ports: [{ containerPort: 1, hostPort }] }),
        },
      ],
    },
    status: { phase, nominatedNodeName: nominated },
  } as unknown as KubePod);

const usedOf = (snapshot: Snapshot, name: string) => {
  const { pods, used, scoredCpu, scoredMemory, hostPorts } = snapshot.nodes.get(name)!;
  return [[...pods.keys()], used.cpu, used.memory, scoredCpu, scoredMemory, hostPorts.map(({ port }) => port)];
};
const EMPTY = [[], 0, 0, 0, 0, []];

describe('a snapshot of the cluster', () => {
  it('has the pods of a node with what they use, in whatever order they were added', () => {
    const first = new Snapshot();
    first.setNode(node('n'));
    for (const name of ['a', 'b']) first.setPod(pod(name, { nodeName: 'n', hostPort: name === 'a' ? 80 : 81 }));
    const second = new Snapshot();
    for (const name of ['a', 'b']) second.setPod(pod(name, { nodeName: 'n', hostPort: name === 'a' ? 80 : 81 }));
    second.setNode(node('n'));
    const expected = [['d/a', 'd/b'], 2_000, 20, 2_000, 20, [80, 81]];
    expect(usedOf(first, 'n')).toEqual(expected);
    expect(usedOf(second, 'n')).toEqual(expected);
    first.removePod('d/a');
    expect(usedOf(first, 'n')).toEqual([['d/b'], 1_000, 10, 1_000, 10, [81]]);
    first.removePod('d/b');
    first.removePod('d/absent');
    expect(usedOf(first, 'n')).toEqual(EMPTY);
    expect(first.pods.size).toBe(0);
  });

  it('replaces a pod, and does not count one that is unbound or has ended', () => {
    const snapshot = new Snapshot();
    for (const name of ['n', 'm']) snapshot.setNode(node(name));
    snapshot.setPod(pod('a', { nodeName: 'n' }));
    snapshot.setPod(pod('a', { nodeName: 'm' }));
    snapshot.setPod(pod('b'));
    snapshot.setPod(pod('c', { nodeName: 'n', phase: 'Succeeded' }));
    expect(usedOf(snapshot, 'n')).toEqual(EMPTY);
    expect(usedOf(snapshot, 'm')[0]).toEqual(['d/a']);
    expect([...snapshot.pods.keys()]).toEqual(['d/a', 'd/b', 'd/c']);
  });

  it('keeps the pods of a node that changes, and uses the new node', () => {
    const snapshot = new Snapshot();
    snapshot.setNode(node('n'));
    snapshot.setPod(pod('a', { nodeName: 'n' }));
    snapshot.setNode(node('n', { zone: 'z' }));
    expect(snapshot.nodes.get('n')?.node.zone).toBe('z');
    expect(usedOf(snapshot, 'n')[0]).toEqual(['d/a']);
  });

  it('names the nodes that do not exist although pods are on them', () => {
    const snapshot = new Snapshot();
    const missing = () => [...snapshot.missingNodes];
    snapshot.setPod(pod('a', { nodeName: 'n' }));
    expect(missing()).toEqual(['n']);
    snapshot.setNode(node('n'));
    expect(missing()).toEqual([]);
    snapshot.removeNode('n');
    snapshot.removeNode('absent');
    expect(missing()).toEqual(['n']);
    snapshot.setPod(pod('b', { nodeName: 'n' }));
    snapshot.removePod('d/a');
    expect(missing()).toEqual(['n']);
    snapshot.removePod('d/b');
    expect(missing()).toEqual([]);
    snapshot.setNode(node('empty'));
    snapshot.removeNode('empty');
    expect(missing()).toEqual([]);
    snapshot.setNode(node('n'));
    expect(usedOf(snapshot, 'n')).toEqual(EMPTY);
  });

  it('counts the nodes that have an image', () => {
    const snapshot = new Snapshot();
    snapshot.setNode(node('n', { images: ['i', 'j'] }));
    snapshot.setNode(node('m', { images: ['i'] }));
    const counts = () => ['i', 'j', 'k'].map((image) => snapshot.nodesWithImage(image));
    expect(counts()).toEqual([2, 1, 0]);
    snapshot.setNode(node('n', { images: ['i', 'k'] }));
    expect(counts()).toEqual([2, 0, 1]);
    snapshot.removeNode('m');
    expect(counts()).toEqual([1, 0, 1]);
  });

  it('orders the nodes zone by zone in turn, and by name in a zone', () => {
    const snapshot = new Snapshot();
    for (const [name, zone] of [
      ['b2', 'b'],
      ['a3', 'a'],
      ['a1', 'a'],
      ['b1', 'b'],
      ['a2', 'a'],
    ] as const) {
      snapshot.setNode(node(name, { zone }));
    }
    expect(snapshot.order).toEqual(['a1', 'b1', 'a2', 'b2', 'a3']);
    snapshot.setNode(node('a1', { zone: 'c' }));
    expect(snapshot.order).toEqual(['a2', 'b1', 'a1', 'a3', 'b2']);
    snapshot.removeNode('b1');
    snapshot.setNode(node('a0', { zone: 'a' }));
    expect(snapshot.order).toEqual(['a0', 'b2', 'a1', 'a2', 'a3']);
    expect(new Snapshot().order).toEqual([]);
  });

  it('has the pods that are nominated to a node while they wait', () => {
    const snapshot = new Snapshot();
    const nominated = () => [...snapshot.nominatedTo('n')].map(({ name }) => name);
    expect([snapshot.hasNominations, nominated()]).toEqual([false, []]);
    snapshot.setPod(pod('a', { nominated: 'n' }));
    snapshot.setPod(pod('b', { nominated: 'n' }));
    snapshot.setPod(pod('c', { nominated: 'm' }));
    snapshot.setPod(pod('d'));
    snapshot.setPod(pod('e', { nominated: 'n', phase: 'Failed' }));
    expect([snapshot.hasNominations, nominated()]).toEqual([true, ['a', 'b']]);
    snapshot.setPod(pod('a', { nominated: 'n', nodeName: 'n' }));
    expect(nominated()).toEqual(['b']);
    snapshot.removePod('d/b');
    snapshot.removePod('d/c');
    expect([snapshot.hasNominations, nominated()]).toEqual([false, []]);
  });
});

describe('counts of matching pods', () => {
  const isWeb = ({ labels }: { readonly labels: Readonly<Record<string, string>> }) => labels['app'] === 'web';
  const labels = { app: 'web' };

  it('follow each pod that is added and removed, also on a node that does not exist', () => {
    const snapshot = new Snapshot();
    snapshot.setNode(node('n'));
    snapshot.setPod(pod('a', { nodeName: 'n', labels }));
    snapshot.setPod(pod('other', { nodeName: 'n' }));
    const counts = () => [...snapshot.counts('web', isWeb)];
    expect(counts()).toEqual([['n', 1]]);
    snapshot.setPod(pod('b', { nodeName: 'n', labels }));
    snapshot.setPod(pod('c', { nodeName: 'gone', labels }));
    snapshot.setPod(pod('d', { labels }));
    expect(counts()).toEqual([
      ['n', 2],
      ['gone', 1],
    ]);
    snapshot.removePod('d/c');
    snapshot.removePod('d/a');
    expect(counts()).toEqual([['n', 1]]);
  });

  it('of equal texts are counted once, until namespaces change', () => {
    const snapshot = new Snapshot();
    snapshot.setPod(pod('a', { nodeName: 'n', labels }));
    let evaluated = 0;
    const count = () =>
      snapshot.counts('web', (each) => {
        evaluated += 1;
        return isWeb(each);
      });
    count();
    count();
    expect(evaluated).toBe(1);
    snapshot.setNamespaces(new Map([['d', {}]]));
    count();
    expect(evaluated).toBe(2);
    expect(snapshot.namespaces.has('d')).toBe(true);
  });

  it('of more than 512 texts are not all kept', () => {
    const snapshot = new Snapshot();
    snapshot.setPod(pod('a', { nodeName: 'n' }));
    let evaluated = 0;
    const count = (text: string) =>
      snapshot.counts(text, () => {
        evaluated += 1;
        return true;
      });
    for (let text = 0; text < 512; text += 1) count(String(text));
    count('0');
    expect(evaluated).toBe(512);
    count('one more');
    count('0');
    expect(evaluated).toBe(514);
  });

  it('of a term include the namespaces that it selects', () => {
    const affinity = {
      podAntiAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: [
          {
            topologyKey: 'zone',
            labelSelector: { matchLabels: labels },
            namespaceSelector: { matchLabels: { team: 'x' } },
          },
        ],
      },
    };
    const snapshot = new Snapshot();
    snapshot.setPod(pod('a', { nodeName: 'n', labels }));
    const [term] = pod('b', { affinity }).antiAffinity;
    expect(snapshot.countsOfTerm(term!).size).toBe(0);
    snapshot.setNamespaces(new Map([['d', { team: 'x' }]]));
    expect([...snapshot.countsOfTerm(term!)]).toEqual([['n', 1]]);
  });

  it('have the terms of the pods that count, with their weights and nodes', () => {
    const term = (topologyKey: string) => ({ topologyKey, labelSelector: {} });
    const of = (must: string, may: string, weight: number) => ({
      requiredDuringSchedulingIgnoredDuringExecution: [term(must)],
      preferredDuringSchedulingIgnoredDuringExecution: [{ weight, podAffinityTerm: term(may) }],
    });
    const affinity = { podAffinity: of('with', 'rather-with', 5), podAntiAffinity: of('without', 'rather-without', 7) };
    const snapshot = new Snapshot();
    const listed = (terms: Snapshot['antiTerms']) =>
      [...terms].map(({ term: { topologyKey }, weight, byNode }) => [topologyKey, weight, Object.fromEntries(byNode)]);
    snapshot.setPod(pod('waiting', { affinity }));
    expect(listed(snapshot.antiTerms)).toEqual([]);
    snapshot.setPod(pod('a', { nodeName: 'n', affinity }));
    snapshot.setPod(pod('b', { nodeName: 'n', affinity }));
    snapshot.setPod(pod('c', { nodeName: 'm', affinity }));
    const byNode = { n: 2, m: 1 };
    expect(listed(snapshot.antiTerms)).toEqual([['without', 0, byNode]]);
    expect(listed(snapshot.scoredTerms)).toEqual([
      ['with', 1, byNode],
      ['rather-with', 5, byNode],
      ['rather-without', -7, byNode],
    ]);
    for (const name of ['a', 'b', 'c']) snapshot.removePod(`d/${name}`);
    expect([...listed(snapshot.antiTerms), ...listed(snapshot.scoredTerms)]).toEqual([]);
  });
});

describe('a trial', () => {
  function snapshotOf() {
    const snapshot = new Snapshot();
    snapshot.setNode(node('n'));
    const a = pod('a', { nodeName: 'n' });
    snapshot.setPod(a);
    return { snapshot, a, keys: () => usedOf(snapshot, 'n')[0] };
  }

  it('with added pods leaves the cluster as it was, also when it fails', () => {
    const { snapshot, keys } = snapshotOf();
    const added = [pod('b', { nodeName: 'n' })];
    expect(snapshot.withAdded(added, keys)).toEqual(['d/a', 'd/b']);
    expect(keys()).toEqual(['d/a']);
    expect(() =>
      snapshot.withAdded(added, () => {
        throw new Error('failed');
      }),
    ).toThrow('failed');
    expect(usedOf(snapshot, 'n')).toEqual([['d/a'], 1_000, 10, 1_000, 10, []]);
  });

  it('with a pod that requests more than sums can hold leaves what the others use', () => {
    const { snapshot, keys } = snapshotOf();
    const most = pod('b', { nodeName: 'n', cpu: '9E' });
    expect(snapshot.withAdded([most], keys)).toEqual(['d/a', 'd/b']);
    expect(usedOf(snapshot, 'n')).toEqual([['d/a'], 1_000, 10, 1_000, 10, []]);
    for (const each of [most, pod('c', { nodeName: 'n' })]) snapshot.setPod(each);
    snapshot.removePod('d/b');
    expect(usedOf(snapshot, 'n')).toEqual([['d/a', 'd/c'], 2_000, 20, 2_000, 20, []]);
  });

  it('reads the host ports of each pod once, also beside a pod that requests more than sums can hold', () => {
    const { snapshot } = snapshotOf();
    snapshot.setPod(pod('most', { nodeName: 'n', cpu: '9E' }));
    let reads = 0;
    const counted = (port: number) => ({
      ...pod(`p${port}`, { nodeName: 'n', hostPort: port }),
      get hostPorts() {
        reads += 1;
        return [{ ip: '0.0.0.0', protocol: 'TCP', port }];
      },
    });
    for (let port = 1; port <= 20; port += 1) snapshot.setPod(counted(port));
    reads = 0;
    snapshot.removePod('d/p7');
    expect(usedOf(snapshot, 'n').at(-1)).toHaveLength(19);
    expect(reads).toBeLessThan(25);
  });

  it('with removed pods puts each back once, also when it fails', () => {
    const { snapshot, a, keys } = snapshotOf();
    snapshot.withRemovals(({ remove, putBack }) => {
      remove(a);
      expect(keys()).toEqual([]);
      putBack(a);
      putBack(a);
      expect(usedOf(snapshot, 'n')[1]).toBe(1_000);
      remove(a);
    });
    expect(usedOf(snapshot, 'n')[1]).toBe(1_000);
    expect(() =>
      snapshot.withRemovals(({ remove }) => {
        remove(a);
        throw new Error('failed');
      }),
    ).toThrow('failed');
    expect(keys()).toEqual(['d/a']);
  });
});
