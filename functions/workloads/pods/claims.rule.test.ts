import { describe, expect, it } from 'vitest';
import type { KubeObject } from '../../../shared/kinds/types.ts';
import { selectorFromSpec } from '../../../shared/kubernetes/selectors.ts';
import { candidatesOf, decideClaims } from './claims.rule.ts';

describe('objects that may belong to an owner', () => {
  const owner: KubeObject = { metadata: { name: 'o', namespace: 'a', uid: 'o' } };
  const selector = selectorFromSpec({ matchLabels: { app: 'x' } });
  const object = (uid: string, metadata: object = {}): KubeObject => ({
    metadata: { name: uid, namespace: 'a', uid, labels: { app: 'x' }, ...metadata },
  });
  const of = (uid: string, controller = true) => ({
    ownerReferences: [{ apiVersion: 'v1', kind: 'K', name: uid, uid, controller }],
  });
  const unselected = { labels: { app: 'y' } };
  const claims = (candidates: readonly KubeObject[], of: KubeObject = owner) => {
    const { owned, adopt, release } = decideClaims(of, selector, candidates);
    return [owned, adopt, release].map((part) => part.map(({ metadata }) => metadata.uid));
  };

  it('WR-27 are owned, adopted or released by their labels and their controller', () => {
    const candidates = [
      object('owned', of('o')),
      object('lost', { ...of('o'), ...unselected }),
      object('foreign', of('another')),
      object('free'),
      object('free-unselected', unselected),
      object('free-without-labels', { labels: undefined }),
      object('dependent', of('another', false)),
      object('terminating', { deletionTimestamp: 'x' }),
      object('elsewhere', { namespace: 'b' }),
      object('owned-terminating', { ...of('o'), deletionTimestamp: 'x' }),
    ];
    expect(claims(candidates)).toEqual([['owned', 'owned-terminating'], ['free', 'dependent'], ['lost']]);
  });

  it('WR-25 are neither adopted nor released while the owner is deleted', () => {
    const deleted = { metadata: { ...owner.metadata, deletionTimestamp: 'x' } };
    const candidates = [object('owned', of('o')), object('lost', { ...of('o'), ...unselected }), object('free')];
    expect(claims(candidates, deleted)).toEqual([['owned'], [], []]);
  });

  it('count once when another worker adopted one that was found free', () => {
    const indexed = [object('a', of('o'))];
    const orphans = [object('a'), object('b'), object('c', of('another'))];
    expect(candidatesOf(indexed, orphans).map(({ metadata }) => metadata.uid)).toEqual(['a', 'b']);
  });
});
