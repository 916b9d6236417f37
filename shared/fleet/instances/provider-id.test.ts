import { describe, expect, it } from 'vitest';
import { instanceScope, parseProviderId, regionOfZone } from './provider-id.ts';

const id = 'i-0123456789abcdef0';

describe('parseProviderId', () => {
  it.each([
    [`aws:///us-east-1a/${id}`, 'us-east-1a', 'us-east-1'],
    [`aws://us-east-1a/${id}`, 'us-east-1a', 'us-east-1'],
    [`aws:////${id}`, undefined, undefined],
    [`aws:///${id}`, undefined, undefined],
    [id, undefined, undefined],
    [`aws:///us-gov-west-1b/${id}`, 'us-gov-west-1b', 'us-gov-west-1'],
    [`aws:///eusc-de-east-1a/${id}`, 'eusc-de-east-1a', 'eusc-de-east-1'],
    [`aws:///us-west-2-lax-1a/${id}`, 'us-west-2-lax-1a', 'us-west-2'],
    [`aws:///us-east-1-wl1-bos-wlz-1/${id}`, 'us-east-1-wl1-bos-wlz-1', 'us-east-1'],
  ])('reads %s', (text, zone, region) => {
    expect(parseProviderId(text)).toEqual({ kind: 'ec2', instanceId: id, zone, region });
  });

  it('reads the old eight-digit ids', () => {
    expect(parseProviderId('i-1a2b3c4d')).toMatchObject({ kind: 'ec2', instanceId: 'i-1a2b3c4d' });
  });

  it.each([
    [undefined, 'absent'],
    ['', 'absent'],
    ['aws:///us-west-2a/7c3a5f-9b1/fargate-ip-10-0-1-2.us-west-2.compute.internal', 'fargate'],
    ['aws:///us-west-2a/fargate-10.0.1.2', 'fargate'],
    ['gce://project/us-central1-a/vm-1', 'otherCloud'],
    ['eks-hybrid:///us-west-2/cluster/mi-0123456789abcdef0', 'otherCloud'],
    ['fake://12345', 'otherCloud'],
    ['k3s://node-1', 'otherCloud'],
    ['edge-17', 'malformed'],
    ['i-', 'malformed'],
    ['i-0123456789abcdef', 'malformed'],
    ['i-0123456789ABCDEF0', 'malformed'],
    ['aws://', 'malformed'],
    ['aws:///us-east-1a/', 'malformed'],
    [`aws:///us-east-1a/${id}/`, 'malformed'],
    [`aws:///us-east-1a/extra/${id}`, 'malformed'],
    [`aws:///nowhere/${id}`, 'malformed'],
    ['aws:///us-east-1a/mi-0123456789abcdef0', 'malformed'],
    [` ${id}`, 'malformed'],
  ])('refuses %j as %s', (text, refusal) => {
    expect(parseProviderId(text)).toMatchObject({ kind: 'refused', refusal });
  });

  it('says in the reason what it saw', () => {
    expect(parseProviderId('gce://p/z/vm')).toMatchObject({
      reason: 'providerID "gce://p/z/vm" belongs to provider gce',
    });
  });
});

describe('instanceScope', () => {
  const ours = { region: 'eu-west-1', accountId: '111111111111' };
  it('is ours unless region or account is known to differ', () => {
    expect(instanceScope({ region: 'eu-west-1', accountId: '111111111111' }, ours).kind).toBe('ours');
    expect(instanceScope({ region: undefined, accountId: undefined }, ours).kind).toBe('ours');
    expect(instanceScope({ region: 'eu-west-2', accountId: undefined }, ours)).toEqual({
      kind: 'foreign',
      reason: 'instance is in region eu-west-2, this cluster is in eu-west-1',
    });
    expect(instanceScope({ region: undefined, accountId: '222222222222' }, ours).kind).toBe('foreign');
  });
});

describe('regionOfZone', () => {
  it('knows zones from regions', () => {
    expect(regionOfZone('ap-southeast-2c')).toBe('ap-southeast-2');
    expect(regionOfZone('eu-west-1')).toBeUndefined();
  });
});
