import { describe, expect, it } from 'vitest';
import type { KubePersistentVolume, KubePersistentVolumeClaim, KubeStorageClass } from '../types.ts';
import {
  classNameOf,
  defaultClass,
  grows,
  isBoundToClaim,
  isFullyBound,
  sameVolumeMode,
  volumesFor,
  wantsDefaultClass,
} from './binding.rule.ts';

const CLASS = 'volume.beta.kubernetes.io/storage-class';

const claim = (spec: object = {}, metadata: object = {}): KubePersistentVolumeClaim => ({
  metadata: { namespace: 'default', name: 'c', uid: 'u', ...metadata },
  spec: {
    accessModes: ['ReadWriteOnce'],
    storageClassName: 'fast',
    resources: { requests: { storage: '5Gi' } },
    ...spec,
  },
});
const volume = (name: string, spec: object = {}, more: object = {}): KubePersistentVolume => ({
  metadata: { name },
  spec: { capacity: { storage: '5Gi' }, accessModes: ['ReadWriteOnce'], storageClassName: 'fast', ...spec },
  status: { phase: 'Available' },
  ...more,
});
const namesFor = (of: KubePersistentVolumeClaim, ...volumes: readonly KubePersistentVolume[]) =>
  volumesFor(of, volumes).map(({ metadata }) => metadata.name);

describe('volumes of a claim', () => {
  it('are those with the fewest access modes, then the smallest, then the first by name', () => {
    const many = { accessModes: ['ReadWriteOnce', 'ReadOnlyMany'] };
    const large = { capacity: { storage: '6Gi' } };
    const volumes = [volume('many', many), volume('large', large), volume('b'), volume('a'), volume('c', large)];
    expect(namesFor(claim(), ...volumes)).toEqual(['a', 'b', 'c', 'large', 'many']);
    expect(namesFor(claim(), ...volumes.toReversed())).toEqual(['a', 'b', 'c', 'large', 'many']);
  });

  it.each<[string, KubePersistentVolume]>([
    ['too small', volume('v', { capacity: { storage: '4Gi' } })],
    ['without a capacity', volume('v', { capacity: undefined })],
    ['of another class', volume('v', { storageClassName: 'slow' })],
    ['without a class', volume('v', { storageClassName: undefined })],
    ['of another volume mode', volume('v', { volumeMode: 'Block' })],
    ['without the access mode', volume('v', { accessModes: ['ReadOnlyMany'] })],
    ['without access modes', volume('v', { accessModes: undefined })],
    ['of another claim', volume('v', { claimRef: { namespace: 'default', name: 'other' } })],
    ['of this name before', volume('v', { claimRef: { namespace: 'default', name: 'c', uid: 'before' } })],
    ['being deleted', volume('v', {}, { metadata: { name: 'v', deletionTimestamp: '2026-01-01T00:00:00Z' } })],
    ['not available', volume('v', {}, { status: { phase: 'Released' } })],
    ['of unknown phase', volume('v', {}, { status: undefined })],
  ])('are none that is %s', (_case, candidate) => {
    expect(namesFor(claim(), candidate)).toEqual([]);
  });

  it('are chosen by labels too', () => {
    const selector = { matchLabels: { tier: 'gold' } };
    const gold = volume('gold', {}, { metadata: { name: 'gold', labels: { tier: 'gold' } } });
    expect(namesFor(claim({ selector }), volume('plain'), gold)).toEqual(['gold']);
    expect(namesFor(claim(), volume('plain'), gold)).toEqual(['gold', 'plain']);
  });

  it('are the one that names it, whatever its class, phase and labels', () => {
    const claimRef = { namespace: 'default', name: 'c' };
    const own = volume('own', { claimRef, storageClassName: 'slow' }, { status: { phase: 'Released' } });
    expect(namesFor(claim(), volume('a'), own)).toEqual(['own']);
    expect(namesFor(claim(), volume('a'), volume('own', { claimRef, capacity: { storage: '1Gi' } }))).toEqual(['a']);
    expect(volumesFor(claim(), [volume('a')], { namedOnly: true })).toEqual([]);
    expect(volumesFor(claim(), [own], { namedOnly: true })).toEqual([own]);
  });
});

it.each([
  [{ namespace: 'default', name: 'c', uid: 'u' }, true],
  [{ namespace: 'default', name: 'c', uid: '' }, true],
  [{ namespace: 'default', name: 'c' }, true],
  [{ namespace: 'default', name: 'c', uid: 'x' }, false],
  [{ namespace: 'other', name: 'c', uid: 'u' }, false],
  [{ namespace: 'default', name: 'd', uid: 'u' }, false],
  [undefined, false],
])('the reference %j names the claim: %s', (claimRef, expected) => {
  expect(isBoundToClaim(volume('v', { claimRef }), claim())).toBe(expected);
});

it.each([
  ['bound', { volumeName: 'v' }, { 'pv.kubernetes.io/bind-completed': 'yes' }, 'Bound', true],
  ['without a volume', {}, { 'pv.kubernetes.io/bind-completed': 'yes' }, 'Bound', false],
  ['without the mark', { volumeName: 'v' }, {}, 'Bound', false],
  ['lost', { volumeName: 'v' }, { 'pv.kubernetes.io/bind-completed': 'yes' }, 'Lost', false],
])('a claim is bound in full: %s', (_case, spec, annotations, phase, expected) => {
  expect(isFullyBound({ ...claim(spec, { annotations }), status: { phase } })).toBe(expected);
});

it('a volume is a file system unless it says otherwise', () => {
  expect(sameVolumeMode(claim(), volume('v', { volumeMode: 'Filesystem' }))).toBe(true);
  expect(sameVolumeMode(claim({ volumeMode: 'Filesystem' }), volume('v'))).toBe(true);
  expect(sameVolumeMode(claim({ volumeMode: 'Block' }), volume('v'))).toBe(false);
});

it('the annotation of a class wins over its field', () => {
  expect(classNameOf(claim({}, { annotations: { [CLASS]: 'old' } }))).toBe('old');
  expect(classNameOf(claim({ storageClassName: undefined }))).toBe('');
  expect(wantsDefaultClass(claim({ storageClassName: undefined }))).toBe(true);
  expect(wantsDefaultClass(claim({ storageClassName: '' }))).toBe(false);
  expect(wantsDefaultClass(claim({ storageClassName: undefined }, { annotations: { [CLASS]: '' } }))).toBe(false);
});

it('the default class is the newest of those that are marked, then the first by name', () => {
  const storage = (name: string, day: number, annotations: object = {}): KubeStorageClass => ({
    metadata: { name, creationTimestamp: `2026-01-0${day}T00:00:00Z`, annotations: { ...annotations } },
    provisioner: 'p',
  });
  const marked = { 'storageclass.kubernetes.io/is-default-class': 'true' };
  const beta = { 'storageclass.beta.kubernetes.io/is-default-class': 'true' };
  const [old, first, second] = [storage('a', 1, marked), storage('b', 2, beta), storage('c', 2, marked)];
  expect(defaultClass([old, second, first, storage('z', 3)])).toBe(first);
  expect(defaultClass([second, old])).toBe(second);
  expect(defaultClass([storage('z', 3, { 'storageclass.kubernetes.io/is-default-class': 'false' })])).toBeUndefined();
});

it.each([
  ['6Gi', '5Gi', true],
  ['5Gi', '5Gi', false],
  ['5120Mi', '5Gi', false],
  ['4Gi', '5Gi', false],
  ['many', '5Gi', false],
])('a request of %s grows one of %s: %s', (next, old, expected) => {
  const of = (amount: string) => claim({ resources: { requests: { storage: amount } } });
  expect(grows(of(next), of(old))).toBe(expected);
});
