import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { apiInMemory, NODES, pod, podsIn } from '../../test/support/api-in-memory.ts';
import { envelope, field, PROTOBUF, protobufBody } from '../../test/support/protobuf-body.ts';

const PODS = podsIn('default');
const asProtobuf = (object: object) => ({
  body: protobufBody(object as Record<string, unknown>),
  contentType: PROTOBUF,
});

describe('a body in protobuf', () => {
  it('creates the same object as its JSON form', async () => {
    const debug = pod('debugger', {
      spec: {
        containers: [{ name: 'main', image: 'busybox', stdin: true, tty: true, securityContext: {} }],
        hostPID: true,
        terminationGracePeriodSeconds: 0,
        volumes: [{ name: 'host-root', hostPath: { path: '/' } }],
        tolerations: [{ operator: 'Exists' }],
        nodeName: 'n1',
      },
    });
    const [json, protobuf] = await Promise.all(
      [{ body: debug }, asProtobuf(debug)].map(async (send) => apiInMemory().send('POST', PODS, send)),
    );
    expect(protobuf).toMatchObject({ code: 201, body: { spec: { terminationGracePeriodSeconds: 0, hostPID: true } } });
    const { managedFields: _json, ...expectedMetadata } = json?.body.metadata ?? {};
    expect({ ...protobuf?.body, metadata: { ...protobuf?.body.metadata, managedFields: undefined } }).toEqual({
      ...json?.body,
      metadata: { ...expectedMetadata, managedFields: undefined },
    });
  });

  it.each([
    [
      'a number that nothing here knows',
      '/api/v1/namespaces',
      envelope('v1', 'Namespace', field(1, field(1, 'team')), field(99, 'later')),
    ],
    [
      'a field of a newer release',
      PODS,
      protobufBody({
        apiVersion: 'v1',
        kind: 'Pod',
        metadata: { name: 'team' },
        spec: { containers: [{ name: 'c', image: 'i' }], workloadRef: { name: 'w', podGroup: 'g' } },
      }),
    ],
  ])('loses %s without a warning, also with strict validation', async (_, path, body) => {
    const created = await apiInMemory().send('POST', `${path}?fieldValidation=Strict`, { body, contentType: PROTOBUF });
    expect(created.code, created.text).toBe(201);
    expect(created.body.spec.workloadRef).toBeUndefined();
    expect(created.headers['warning']).toBeUndefined();
  });

  it('may have more packed numbers than a call has arguments', async () => {
    const groups = field(4, new Uint8Array(380_000).fill(1));
    const body = envelope('v1', 'Pod', field(1, field(1, 'p')), field(2, field(14, groups)));
    const { code, text } = await apiInMemory().send('POST', PODS, { body, contentType: PROTOBUF });
    expect([code, text]).toEqual([400, expect.stringContaining('supplementalGroups has 380000 members')]);
  });

  it('may leave its type to the path', async () => {
    const body = envelope('', '', field(1, field(1, 'team')));
    expect(await apiInMemory().send('POST', '/api/v1/namespaces', { body, contentType: PROTOBUF })).toMatchObject({
      code: 201,
      body: { kind: 'Namespace' },
    });
  });

  it('is refused when it has another kind than the path', async () => {
    const answer = await apiInMemory().send('POST', NODES, asProtobuf(pod('p')));
    expect(answer).toMatchObject({
      code: 400,
      body: { reason: 'BadRequest', message: expect.stringContaining('Pod') },
    });
  });

  it('is refused with the message of upstream when it is JSON', async () => {
    const answer = await apiInMemory().send('POST', '/api/v1/namespaces', { body: {}, contentType: PROTOBUF });
    expect(answer).toMatchObject({
      code: 400,
      body: {
        message:
          'the object provided is unrecognized (must be of type Namespace): provided data does not appear to be a protobuf message, expected prefix [107 56 115 0] (7b7d)',
      },
    });
  });

  it('is never a fault of the server, whatever its bytes', async () => {
    const api = apiInMemory();
    const whole = protobufBody(pod('fuzzed') as Record<string, unknown>);
    const change = fc.record({ at: fc.nat(whole.length - 1), byte: fc.nat(255), cut: fc.nat(whole.length) });
    await fc.assert(
      fc.asyncProperty(fc.array(change, { minLength: 1, maxLength: 4 }), async (changes) => {
        const body = Buffer.from(whole);
        for (const { at, byte } of changes) body[at] = byte;
        const { code } = await api.send('POST', `${PODS}?dryRun=All`, {
          body: body.subarray(0, changes[0]?.cut === 0 ? undefined : changes[0]?.cut),
          contentType: PROTOBUF,
        });
        expect(code).toBeLessThan(500);
      }),
      { numRuns: 300 },
    );
    expect(api.faults).toEqual([]);
  });

  it.each([20_000, 190_000])('with %d empty containers is refused, and the response is small', async (count) => {
    const container = field(2);
    const spec = Buffer.concat(Array.from({ length: count }, () => container));
    const bodies = [
      { body: envelope('v1', 'Pod', field(1, field(1, 'p')), field(2, spec)), contentType: PROTOBUF },
      {
        body: {
          metadata: { name: 'p' },
          spec: { containers: Array.from({ length: Math.min(count, 125_000) }, () => ({})) },
        },
      },
    ];
    for (const send of bodies) {
      const api = apiInMemory();
      const { code, bytes } = await api.send('POST', PODS, send);
      expect({ code, faults: api.faults }).toEqual({ code: count > 20_000 ? 400 : 422, faults: [] });
      expect(bytes.length).toBeLessThan(1_000_000);
    }
  });

  it('with too many labels is refused', async () => {
    const labels = Object.fromEntries(Array.from({ length: 30_000 }, (_, index) => [`!${index}`, '']));
    const answer = await apiInMemory().send('POST', NODES, { body: { metadata: { name: 'a', labels } } });
    expect(answer).toMatchObject({ code: 400, body: { message: expect.stringContaining('has 30000 members') } });
  });
});
