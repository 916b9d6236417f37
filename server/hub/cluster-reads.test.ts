/** Answers of what is not a cluster: of a balancer in between, or of one that is broken. */
import { describe, expect, it } from 'vitest';
import { ClusterRefusal, clusterReads } from './cluster-reads.ts';

function reads(status: number, body: string, headers: Readonly<Record<string, string>> = {}) {
  return clusterReads({ send: async () => ({ status, headers, body: Buffer.from(body) }) });
}

const PODS = { group: '', resource: 'pods', after: '5' };
const refusal = async (cluster: ReturnType<typeof reads>): Promise<ClusterRefusal> => {
  const error: unknown = await cluster.changes([PODS]).catch((fault: unknown) => fault);
  expect(error).toBeInstanceOf(ClusterRefusal);
  return error as ClusterRefusal;
};
const changes = (through: unknown) =>
  reads(
    201,
    JSON.stringify({ status: { resources: [{ ...PODS, outcome: 'changes', through, more: false, changes: [] }] } }),
  );

describe('an answer of the cluster', () => {
  it('asks for a wait that a timer can have', async () => {
    for (const seconds of ['1e9', '2147484', 'Infinity']) {
      const { retryAfterMs } = await refusal(reads(503, '{}', { 'retry-after': seconds }));
      expect({ seconds, retryAfterMs }).toEqual({ seconds, retryAfterMs: 300_000 });
    }
    expect((await refusal(reads(429, '{}', { 'retry-after': '7' }))).retryAfterMs).toBe(7_000);
    expect((await refusal(reads(503, '<html>', { 'retry-after': '7' }))).retryAfterMs).toBe(7_000);
    expect((await refusal(reads(503, '{}', { 'retry-after': '-1' }))).retryAfterMs).toBe(0);
  });

  it('has a message that fits into a header', async () => {
    const message = 'x'.repeat(10_000_000);
    expect((await refusal(reads(500, JSON.stringify({ message })))).message.length).toBeLessThan(500);
  });

  it.each(['null', '[]', '"text"', '<html>', '{"half'])('is refused with status 200 and the body %s', async (body) => {
    expect((await refusal(reads(200, body))).message).toContain('without JSON');
  });

  it('has versions, because they are stored as cursors', async () => {
    for (const through of [undefined, null, '', '-5', 'x', '1e3', '99999999999999999999', 7]) {
      expect((await refusal(changes(through))).message).toContain('no version');
    }
    await expect(changes('7').changes([PODS])).resolves.toMatchObject({ outcomes: [{ through: '7' }] });
  });
});
