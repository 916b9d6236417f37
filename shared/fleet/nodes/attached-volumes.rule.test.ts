import { describe, expect, it } from 'vitest';
import { asVolumeId, namesVolumes, volumeIdOf, volumeIdOfUniqueName, wantsVolume } from './attached-volumes.rule.ts';

describe('a volume id', () => {
  it.each([
    ['vol-0aa', 'vol-0aa'],
    ['aws://eu-central-1a/vol-0aa', 'vol-0aa'],
    ['vol-', undefined],
    ['pvc-1', undefined],
    ['', undefined],
    [undefined, undefined],
  ])('is read from %j as %j', (text, id) => {
    expect(asVolumeId(text)).toBe(id);
  });

  it('is read from the unique name of an EBS volume only', () => {
    expect(volumeIdOfUniqueName('kubernetes.io/csi/ebs.csi.aws.com^vol-0aa')).toBe('vol-0aa');
    expect(volumeIdOfUniqueName('kubernetes.io/csi/efs.csi.aws.com^fs-1')).toBeUndefined();
    expect(volumeIdOfUniqueName('kubernetes.io/csi/ebs.csi.aws.com^../x')).toBeUndefined();
  });
});

describe('a pod', () => {
  const claim = { persistentVolumeClaim: { claimName: 'data' } };
  const direct = { awsElasticBlockStore: { volumeID: 'aws://eu-central-1a/vol-0aa' } };

  it.each([
    ['by a claim, every volume', [claim], ['vol-0aa', 'vol-0bb', undefined]],
    ['by an ephemeral claim, every volume', [{ ephemeral: {} }], ['vol-0aa', 'vol-0bb', undefined]],
    ['by name, that volume, and one that is not known', [direct], ['vol-0aa', undefined]],
    ['by a name that cannot be read, every volume', [{ awsElasticBlockStore: {} }], ['vol-0aa', 'vol-0bb', undefined]],
    ['with other volumes, none', [{ emptyDir: {} }, { csi: { driver: 'secrets-store.csi.k8s.io' } }], []],
    ['without volumes, none', [], []],
  ])('wants %s', (_, volumes, wanted) => {
    const all = ['vol-0aa', 'vol-0bb', undefined];
    expect(all.filter((volumeId) => wantsVolume(volumes, volumeId))).toEqual(wanted);
    expect(namesVolumes(volumes)).toBe(wanted.length > 0);
  });
});

describe('the volume of an attachment', () => {
  const attachment = { name: 'csi-x', nodeName: 'n', annotation: undefined, volumeHandle: undefined };
  const names = ['kubernetes.io/csi/ebs.csi.aws.com^vol-0aa', 'kubernetes.io/csi/ebs.csi.aws.com^vol-0bb'];
  const hash = (text: string) => (text === 'vol-0bbebs.csi.aws.comn' ? 'x' : 'y');

  it('is the one that the attachment names', () => {
    expect(volumeIdOf({ ...attachment, annotation: 'vol-0cc' }, names, hash)).toBe('vol-0cc');
    expect(volumeIdOf({ ...attachment, volumeHandle: 'vol-0cc' }, names, hash)).toBe('vol-0cc');
  });

  it('is the volume of the node from which the attachment name is derived', () => {
    expect(volumeIdOf(attachment, names, hash)).toBe('vol-0bb');
    expect(volumeIdOf(attachment, names.slice(0, 1), hash)).toBeUndefined();
    expect(volumeIdOf(attachment, names, undefined)).toBeUndefined();
  });

  it('is unknown when two fields name different volumes', () => {
    expect(volumeIdOf({ ...attachment, annotation: 'vol-0aa', volumeHandle: 'vol-0bb' }, names, hash)).toBeUndefined();
  });
});
