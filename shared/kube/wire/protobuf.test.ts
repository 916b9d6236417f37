import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { decodeProtobuf, isProtobuf } from './protobuf.ts';

/** A length-delimited field. */
const field = (number: number, ...content: (string | Uint8Array)[]): Uint8Array => {
  const bytes = Buffer.concat(content.map((part) => Buffer.from(part)));
  return Buffer.concat([varint((number << 3) | 2), varint(bytes.length), bytes]);
};
const number = (at: number, value: number | bigint): Uint8Array => Buffer.concat([varint(at << 3), varint(value)]);

function varint(value: number | bigint): Uint8Array {
  const bytes: number[] = [];
  let rest = BigInt.asUintN(64, BigInt(value));
  while (rest >= 0x80n) {
    bytes.push(Number(rest & 0x7fn) | 0x80);
    rest >>= 7n;
  }
  return Buffer.from([...bytes, Number(rest)]);
}

const MAGIC = Buffer.from([0x6b, 0x38, 0x73, 0x00]);
const body = (apiVersion: string, kind: string, ...raw: Uint8Array[]): Uint8Array =>
  Buffer.concat([MAGIC, field(1, field(1, apiVersion), field(2, kind)), field(2, ...raw), field(3), field(4)]);

const decoded = (bytes: Uint8Array) => {
  const result = decodeProtobuf(bytes);
  return result.kind === 'decoded' ? result.object : result;
};

describe('decodeProtobuf', () => {
  it('reads DeleteOptions with preconditions and dry run', () => {
    const raw = [
      number(1, 0),
      field(2, field(1, 'u-1'), field(2, '42')),
      field(4, 'Background'),
      field(5, 'All'),
      number(99, 7),
    ];
    expect(decoded(body('v1', 'DeleteOptions', ...raw))).toEqual({
      apiVersion: 'v1',
      kind: 'DeleteOptions',
      gracePeriodSeconds: 0,
      preconditions: { uid: 'u-1', resourceVersion: '42' },
      propagationPolicy: 'Background',
      dryRun: ['All'],
    });
  });

  it('reads DeleteOptions in the group of what is deleted', () => {
    expect(decoded(body('policy/v1', 'DeleteOptions', number(1, 30)))).toMatchObject({ gracePeriodSeconds: 30 });
  });

  it('reads reviews', () => {
    expect(
      decoded(
        body(
          'authorization.k8s.io/v1',
          'SelfSubjectAccessReview',
          field(1),
          field(2, field(1, field(1, 'default'), field(2, 'get'), field(3, ''), field(5, 'nodes'), field(6, 'status'))),
        ),
      ),
    ).toEqual({
      apiVersion: 'authorization.k8s.io/v1',
      kind: 'SelfSubjectAccessReview',
      metadata: {},
      spec: {
        resourceAttributes: { namespace: 'default', verb: 'get', group: '', resource: 'nodes', subresource: 'status' },
      },
    });
    expect(
      decoded(body('authorization.k8s.io/v1', 'SelfSubjectRulesReview', field(2, field(1, 'kube-system')))),
    ).toMatchObject({ spec: { namespace: 'kube-system' } });
    expect(decoded(body('authentication.k8s.io/v1', 'SelfSubjectReview'))).toEqual({
      apiVersion: 'authentication.k8s.io/v1',
      kind: 'SelfSubjectReview',
    });
  });

  it('reads a namespace with labels; an unset time is null', () => {
    const labels = [field(11, field(1, 'a'), field(2, '1')), field(11, field(1, '__proto__'))];
    const object = decoded(
      body('v1', 'Namespace', field(1, field(1, 'team'), field(8), ...labels), field(2), field(3)),
    );
    expect(object).toMatchObject({ metadata: { name: 'team', creationTimestamp: null }, spec: {}, status: {} });
    expect(JSON.stringify(object)).toContain('"labels":{"a":"1","__proto__":""}');
  });

  it('reads the lease a kubelet renews, to the microsecond', () => {
    const renewed = field(4, number(1, 1_795_176_000), number(2, 123_456_789));
    const raw = field(2, field(1, 'node-1'), number(2, 40), renewed, number(5, -1));
    expect(decoded(body('coordination.k8s.io/v1', 'Lease', raw))).toMatchObject({
      spec: {
        holderIdentity: 'node-1',
        leaseDurationSeconds: 40,
        renewTime: '2026-11-20T12:00:00.123456Z',
        leaseTransitions: -1,
      },
    });
  });

  it('reads the node a kubelet registers', () => {
    const raw = [
      field(2, field(5, field(1, 'k'), field(2, ''), field(3, 'NoExecute'), field(4, number(1, 1_795_176_000)))),
      field(
        3,
        field(1, field(1, 'cpu'), field(2, field(1, '4'))),
        field(4, field(1, 'Ready'), field(2, 'True'), field(3), field(5, 'r')),
        field(6, field(1, number(1, 10_250))),
        field(7, field(1, 'm-1')),
        field(8, field(1, 'app:1'), field(1, 'app@sha256:0'), number(2, 1)),
      ),
    ];
    expect(decoded(body('v1', 'Node', ...raw))).toMatchObject({
      spec: { taints: [{ key: 'k', value: '', effect: 'NoExecute', timeAdded: '2026-11-20T12:00:00Z' }] },
      status: {
        capacity: { cpu: '4' },
        conditions: [{ type: 'Ready', status: 'True', lastHeartbeatTime: null, reason: 'r' }],
        daemonEndpoints: { kubeletEndpoint: { Port: 10_250 } },
        nodeInfo: { machineID: 'm-1' },
        images: [{ names: ['app:1', 'app@sha256:0'], sizeBytes: 1 }],
      },
    });
  });

  it('says that other kinds are read as JSON only', () => {
    expect(decodeProtobuf(body('v1', 'Secret'))).toMatchObject({ kind: 'unsupported' });
    expect(decodeProtobuf(MAGIC)).toMatchObject({ kind: 'unsupported' });
  });

  it.each([
    ['no magic', Buffer.from('{"kind":"Node"}')],
    ['nothing', Buffer.alloc(0)],
    ['a length beyond the body', Buffer.concat([MAGIC, Buffer.from([0x0a, 0x7f, 0x01])])],
    ['a number without end', Buffer.concat([MAGIC, Buffer.alloc(11, 0xff)])],
    ['a group', Buffer.concat([MAGIC, Buffer.from([0x0b])])],
    ['field number zero', Buffer.concat([MAGIC, Buffer.from([0x02, 0x00])])],
    ['text that is not UTF-8', Buffer.concat([MAGIC, field(1, field(1, Buffer.from([0xff])))])],
    ['a number for a message', body('v1', 'Namespace', number(1, 1))],
    ['a message for a number', body('v1', 'DeleteOptions', field(1, 'x'))],
    ['a time out of range', body('v1', 'Namespace', field(1, field(8, number(1, 2n ** 62n))))],
    ['a compressed body', Buffer.concat([MAGIC, field(1, field(1, 'v1'), field(2, 'Namespace')), field(3, 'gzip')])],
  ])('calls %s malformed', (_case, bytes) => {
    expect(decodeProtobuf(bytes)).toMatchObject({ kind: 'malformed' });
  });

  it('never throws, whatever the bytes', () => {
    const frame = (raw: Uint8Array) => body('v1', 'Node', raw);
    fc.assert(
      fc.property(fc.uint8Array({ maxLength: 64 }), (bytes) => {
        for (const given of [bytes, Buffer.concat([MAGIC, bytes]), frame(bytes)]) {
          expect(decodeProtobuf(given).kind).toBeTypeOf('string');
        }
      }),
      { numRuns: 1_000 },
    );
  });

  it('knows its own envelope', () => {
    expect(isProtobuf(MAGIC)).toBe(true);
    expect(isProtobuf(Buffer.from('k8s'))).toBe(false);
  });
});
