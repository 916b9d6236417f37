import { describe, expect, it } from 'vitest';
import type { KubePod, PodSpec } from '../../shared/kinds/types.ts';
import { concernsOthers, mayHelp, type WorldChange } from '../../shared/scheduling/queue.rule.ts';
import { isPending, type SchedulablePod, schedulablePod } from '../../shared/scheduling/world.rule.ts';
import { ChangeHistory } from './change-history.ts';

interface Made {
  readonly spec?: object;
  readonly status?: object;
  readonly isTerminating?: boolean;
}

function pod(name: string, { spec = {}, status = {}, isTerminating = false }: Made = {}): SchedulablePod {
  const deletion = isTerminating ? { deletionTimestamp: '2026-01-01T00:00:00Z' } : {};
  const metadata = { name, namespace: 'default', uid: name, labels: { app: 'web' }, ...deletion };
  return schedulablePod({ metadata, spec: { containers: [{ name: 'c' }], ...spec } as PodSpec, status } as KubePod);
}

const bound = (name: string): WorldChange => ({
  kind: 'pod',
  before: pod(name),
  after: pod(name, { spec: { nodeName: 'n1' } }),
});
const created = (name: string): WorldChange => ({ kind: 'pod', before: undefined, after: pod(name) });
const changed = (name: string): WorldChange => ({ kind: 'pod', before: pod(name), after: pod(name) });

/** What a waiting pod is asked about. */
function asked(history: ChangeHistory, key: string, seen: number): readonly WorldChange[] | 'everything' {
  const changes: WorldChange[] = [];
  const helped = history.mayHelp(key, seen, (change) => {
    changes.push(change);
    return false;
  });
  return helped ? 'everything' : changes;
}

describe('the history of changes', () => {
  it('asks a pod about its own changes and about those that concern others, once', () => {
    const history = new ChangeHistory();
    history.startWaiting('default/p');
    for (const change of [created('q'), bound('r'), changed('p'), changed('q')]) history.add(change);
    expect(history.changeCount).toBe(4);
    expect(asked(history, 'default/p', 0)).toEqual([bound('r'), changed('p')]);
    expect(asked(history, 'default/p', 0)).toEqual([]);
    history.add(bound('s'));
    expect(asked(history, 'default/p', 0)).toEqual([bound('s')]);
  });

  it('asks about no change that the last attempt has seen', () => {
    const history = new ChangeHistory();
    history.startWaiting('default/p');
    history.add(bound('r'));
    history.add(changed('p'));
    expect(asked(history, 'default/p', 2)).toEqual([]);
    expect(asked(history, 'default/p', 1)).toEqual([]);
  });

  it('asks again about a change that helped, until the pod was tried', () => {
    const history = new ChangeHistory();
    history.startWaiting('default/p');
    history.add(bound('r'));
    for (let time = 0; time < 2; time += 1) expect(history.mayHelp('default/p', 0, () => true)).toBe(true);
  });

  it('keeps a bounded number of changes, and helps pods that were tried before them', () => {
    const history = new ChangeHistory();
    history.startWaiting('default/p');
    for (let index = 0; index < 8_192; index += 1) history.add(bound('r'));
    expect(history.mayHelp('default/p', 0, () => false)).toBe(false);
    history.startWaiting('default/q');
    history.add(bound('r'));
    expect(asked(history, 'default/p', 4_096)).toHaveLength(1);
    expect(asked(history, 'default/q', 8_192)).toHaveLength(1);
    history.stopWaiting('default/p');
    history.startWaiting('default/p');
    expect(asked(history, 'default/p', 4_096)).toBe('everything');
  });

  it('does not forget for others when one pod changes often', () => {
    const history = new ChangeHistory();
    for (const name of ['p', 'q']) history.startWaiting(`default/${name}`);
    history.add(bound('r'));
    for (let index = 0; index < 10_000; index += 1) history.add(changed('q'));
    expect(asked(history, 'default/p', 0)).toEqual([bound('r')]);
    expect(asked(history, 'default/q', 0)).toBe('everything');
    expect(asked(history, 'default/q', 10_000)).toEqual([changed('q')]);
  });

  it('knows nothing of a time that was not observed', () => {
    const history = new ChangeHistory();
    history.startWaiting('default/p');
    history.forget(['default/p']);
    expect(asked(history, 'default/p', 0)).toBe('everything');
    expect(asked(history, 'default/p', history.changeCount)).toEqual([]);
  });
});

it('a change that does not concern others helps no other pod, whatever refused it', () => {
  const term = { topologyKey: 'zone', labelSelector: { matchLabels: { app: 'web' } } };
  const required = { requiredDuringSchedulingIgnoredDuringExecution: [term] };
  const waiting: readonly SchedulablePod[] = [
    pod('w', { spec: { topologySpreadConstraints: [{ ...term, maxSkew: 1, whenUnsatisfiable: 'DoNotSchedule' }] } }),
    pod('w', { spec: { affinity: { podAffinity: required } } }),
    pod('w', { spec: { affinity: { podAntiAffinity: required } } }),
    pod('w', {
      spec: { containers: [{ name: 'c', ports: [{ hostPort: 80, containerPort: 80 }] }], hostNetwork: true },
    }),
  ];
  const sides: readonly (SchedulablePod | undefined)[] = [
    undefined,
    ...[{}, { nodeName: 'n1' }, { affinity: { podAntiAffinity: required } }].flatMap((spec) =>
      [{}, { nominatedNodeName: 'n1' }, { phase: 'Failed' }].flatMap((status) =>
        [false, true].map((isTerminating) => pod('o', { spec, status, isTerminating })),
      ),
    ),
  ];
  const plugins = ['NodeResourcesFit', 'NodePorts', 'PodTopologySpread', 'InterPodAffinity'] as const;
  let helpful = 0;
  let unconcerned = 0;
  for (const before of sides) {
    for (const after of sides) {
      const change: WorldChange = { kind: 'pod', before, after };
      const helps = waiting.some((each) => mayHelp(each, plugins, { change, namespaces: new Map() }));
      if (helps) helpful += 1;
      if (!concernsOthers(change)) unconcerned += 1;
      expect([before, after, helps && !concernsOthers(change)]).toEqual([before, after, false]);
    }
  }
  expect(waiting.every(isPending)).toBe(true);
  // Both are asked about.
  expect([helpful > 50, unconcerned > 50]).toEqual([true, true]);
});
