import { describe, expect, it } from 'vitest';
import type {
  KubePersistentVolumeClaim,
  KubePod,
  OwnerReference,
  StatefulSetSpec,
  Volume,
} from '../../../shared/kinds/types.ts';
import type { KubeStatefulSet } from '../workload-types.ts';
import { claimNamesFor, claimsFor, withClaims, withOwnersOf } from './claims.rule.ts';

const setOf = (spec: StatefulSetSpec): KubeStatefulSet => ({
  metadata: { name: 'db', namespace: 'shop', uid: 'set' },
  spec,
});
const template = (name: string) => ({ metadata: { name }, spec: { accessModes: ['ReadWriteOnce'] } });

describe('the claims of a pod', () => {
  it('are one for each template, with the labels of both and the annotations of its own', () => {
    const set = setOf({
      selector: { matchLabels: { app: 'db' } },
      volumeClaimTemplates: [
        { metadata: { name: 'data', labels: { tier: 'hot' }, annotations: { note: 'a' } }, spec: { volumeName: 'v' } },
        { metadata: { name: 'log' } },
      ],
    });
    expect(claimNamesFor(set, 3)).toEqual(['data-db-3', 'log-db-3']);
    expect(claimsFor(set, 3)).toStrictEqual([
      {
        metadata: {
          name: 'data-db-3',
          namespace: 'shop',
          labels: { tier: 'hot', app: 'db' },
          annotations: { note: 'a' },
        },
        spec: { volumeName: 'v' },
      },
      { metadata: { name: 'log-db-3', namespace: 'shop', labels: { app: 'db' } }, spec: {} },
    ]);
  });

  it('are none without templates', () => {
    expect([claimNamesFor({ metadata: { name: 'db' } }, 0), claimsFor(setOf({}), 0)]).toEqual([[], []]);
    const podTemplate = { spec: { containers: [] } };
    expect(withClaims(podTemplate, setOf({}), 0)).toBe(podTemplate);
  });

  it.each<[string, Volume[] | undefined, string[]]>([
    ['no volumes', undefined, ['data', 'log']],
    ['another volume', [{ name: 'tmp', emptyDir: {} }], ['data', 'log', 'tmp']],
    ['a volume of the same name', [{ name: 'log', emptyDir: {} }], ['data', 'log']],
  ])('are its volumes where the template has %s', (_, volumes, names) => {
    const set = setOf({ volumeClaimTemplates: [template('data'), template('log')] });
    const of = withClaims(
      { metadata: { labels: { a: 'b' } }, spec: { containers: [], ...(volumes && { volumes }) } },
      set,
      1,
    );
    expect(of.metadata).toEqual({ labels: { a: 'b' } });
    expect(of.spec?.volumes?.map(({ name }) => name)).toEqual(names);
    expect(of.spec?.volumes?.slice(0, 2).map((each) => each.persistentVolumeClaim)).toEqual([
      { claimName: 'data-db-1' },
      { claimName: 'log-db-1' },
    ]);
    expect(withClaims({}, set, 1).spec?.volumes).toHaveLength(2);
  });
});

describe('the owners of a claim', () => {
  const pod: KubePod = { metadata: { name: 'db-1', namespace: 'shop', uid: 'pod' } };
  const reference = (kind: string, name: string, uid: string): OwnerReference => ({
    apiVersion: kind === 'Pod' ? 'v1' : 'apps/v1',
    kind,
    name,
    uid,
  });
  const bySet = reference('StatefulSet', 'db', 'set');
  const byPod = reference('Pod', 'db-1', 'pod');
  const others = reference('StatefulSet', 'cache', 'other');
  const othersPod = reference('Pod', 'db-2', 'other-pod');

  /** Names of the owners afterwards; undefined: nothing to write. */
  function ownersOf(before: OwnerReference[] | undefined, policy: [string, string] | undefined, isCondemned = false) {
    const persistentVolumeClaimRetentionPolicy = policy && { whenDeleted: policy[0], whenScaled: policy[1] };
    const claim: KubePersistentVolumeClaim = {
      metadata: { name: 'data-db-1', labels: { kept: '' }, ...(before && { ownerReferences: before }) },
      spec: {},
    };
    const set = setOf({ ...(persistentVolumeClaimRetentionPolicy && { persistentVolumeClaimRetentionPolicy }) });
    const next = withOwnersOf(claim, set, { pod, isCondemned });
    if (next === undefined) return undefined;
    expect({ ...next, metadata: { ...next.metadata, ownerReferences: undefined } }).toEqual({
      ...claim,
      metadata: { ...claim.metadata, ownerReferences: undefined },
    });
    return next.metadata.ownerReferences ?? 'none';
  }

  it.each<[string, OwnerReference[] | undefined, [string, string] | undefined, boolean, unknown]>([
    ['none by default', undefined, undefined, true, undefined],
    ['none that retains', undefined, ['Retain', 'Retain'], true, undefined],
    ['the set that deletes with it', undefined, ['Delete', 'Retain'], false, [bySet]],
    ['the set, also of a condemned pod', undefined, ['Delete', 'Retain'], true, [bySet]],
    ['the condemned pod', [bySet], ['Delete', 'Delete'], true, [byPod]],
    ['not a pod that stays', [byPod], ['Retain', 'Delete'], false, 'none'],
    ['the set again, when the pod stays', [byPod], ['Delete', 'Delete'], false, [bySet]],
    ['the set as before', [others, bySet], ['Delete', 'Retain'], false, undefined],
    ['the pod as before', [byPod], ['Retain', 'Delete'], true, undefined],
    ['those of others', [others, bySet, othersPod], ['Retain', 'Retain'], false, [others, othersPod]],
    ['the set of today', [reference('StatefulSet', 'db', 'old')], ['Delete', 'Retain'], false, [bySet]],
    ['one, not both', [byPod, bySet], ['Delete', 'Retain'], false, [bySet]],
  ])('are %s', (_, before, policy, isCondemned, expected) => {
    expect(ownersOf(before, policy, isCondemned)).toEqual(expected);
  });
});

it('a claim is created with its set as owner where the policy deletes it', () => {
  const policy = { whenDeleted: 'Delete', whenScaled: 'Delete' };
  const set = setOf({ volumeClaimTemplates: [template('data')], persistentVolumeClaimRetentionPolicy: policy });
  expect(claimsFor(set, 0)[0]?.metadata.ownerReferences).toEqual([
    { apiVersion: 'apps/v1', kind: 'StatefulSet', name: 'db', uid: 'set' },
  ]);
});
