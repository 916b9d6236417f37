import { describe, expect, it } from 'vitest';
import type { CloudAnswer } from '../../../shared/fleet/instances/instance.ts';
import { instanceEnrolmentVerdict } from './instance-identity.ts';

const ID = 'i-0123456789abcdef0';
const ADDRESSES = [
  { type: 'InternalIP', address: '10.0.0.7' },
  { type: 'InternalDNS', address: 'ip-10-0-0-7.ec2.internal' },
  { type: 'Hostname', address: 'edge-7' },
  { type: 'ExternalDNS', address: 'edge-7.example' },
] as const;
const found = (state: string) => ({ kind: 'found', state }) as CloudAnswer;
const judged = (nodeName: string, answer: CloudAnswer) =>
  instanceEnrolmentVerdict(nodeName, ID, { answer, addresses: ADDRESSES });

describe('an instance enrols', () => {
  it.each([ID, 'ip-10-0-0-7.ec2.internal', 'edge-7'])('by the name %s, running or starting', (nodeName) => {
    expect(judged(nodeName, found('running'))).toEqual({ kind: 'granted' });
    expect(judged(nodeName, found('pending'))).toEqual({ kind: 'granted' });
  });

  it.each(['10.0.0.7', 'edge-7.example', 'edge-8', ''])('not by the name %j', (nodeName) => {
    expect(judged(nodeName, found('running'))).toEqual({
      kind: 'forbidden',
      reason: `instance ${ID} may be named ${ID}, ip-10-0-0-7.ec2.internal, edge-7`,
    });
  });

  it.each([found('stopped'), found('terminated'), { kind: 'notFound' } as CloudAnswer])(
    'not when EC2 answers %j',
    (answer) => {
      expect(judged(ID, answer)).toEqual({ kind: 'forbidden', reason: `instance ${ID} is not running` });
    },
  );

  it('later, when EC2 could not be asked', () => {
    expect(judged(ID, { kind: 'failed' } as CloudAnswer)).toEqual({
      kind: 'unavailable',
      reason: `EC2 could not be asked about ${ID}`,
    });
  });
});
