import { describe, expect, it } from 'vitest';
import type { KubeNode } from '../../shared/kinds/types.ts';
import { apiInMemory, MERGE, STRATEGIC } from '../../test/support/api-in-memory.ts';

const UNTIL = 'nodekeeper.dev/planned-silence-until';
const REASON = 'nodekeeper.dev/planned-silence-reason';
const USERS = { n1: { name: 'system:node:n1', groups: ['system:nodes'] } } as const;

async function world(maxPlannedSilenceSeconds = 0) {
  const api = apiInMemory({ users: { ...USERS }, policy: { maxPlannedSilenceSeconds } });
  await api.send('POST', '/api/v1/nodes', { body: { apiVersion: 'v1', kind: 'Node', metadata: { name: 'n1' } } });
  const at = (aheadSeconds: number) =>
    new Date(api.nowMs() + aheadSeconds * 1_000).toISOString().replace(/\.\d+Z/, 'Z');
  const annotate = (annotations: Record<string, string | null>, who?: string) =>
    api.send('PATCH', '/api/v1/nodes/n1', {
      contentType: MERGE,
      body: { metadata: { annotations } },
      ...(who === undefined ? {} : { headers: { authorization: `Bearer ${who}` } }),
    });
  const node = async () => (await api.send('GET', '/api/v1/nodes/n1')).body as KubeNode;
  return { api, at, annotate, node };
}
const messageOf = ({ body }: { body: unknown }): string => (body as { message: string }).message;

describe('a promise of silence', () => {
  it('of a person may end in 30 days, not later', async () => {
    const { at, annotate, node } = await world();
    expect((await annotate({ [UNTIL]: at(30 * 86_400), [REASON]: 'dry dock' })).code).toBe(200);
    expect((await node()).spec?.taints?.map(({ key }) => key)).toContain('nodekeeper.dev/planned-silence');
    const late = await annotate({ [UNTIL]: at(30 * 86_400 + 1) });
    expect(late.code).toBe(422);
    expect(messageOf(late)).toBe(
      `Node "n1" is invalid: metadata.annotations[${UNTIL}]: Invalid value: "${at(30 * 86_400 + 1)}": ` +
        `must be at most 2592000 s ahead: ${at(30 * 86_400)}`,
    );
  });

  it('is refused in a creation too, by the name of the new Node', async () => {
    const { api } = await world();
    const body = { metadata: { name: 'n2', annotations: { [UNTIL]: 'tomorrow' } } };
    const answer = await api.send('POST', '/api/v1/nodes', { body });
    expect(answer.code).toBe(422);
    expect(messageOf(answer)).toMatch(/^Node "n2" is invalid: /);
  });

  it.each([
    ['the past', (at: (seconds: number) => string) => at(-1), 'must be in the future'],
    ['no time', () => 'tomorrow', 'must be a time in RFC 3339'],
  ])('in %s is refused', async (_what, textOf, rule) => {
    const { at, annotate, node } = await world();
    const answer = await annotate({ [UNTIL]: textOf(at) });
    expect(answer.code).toBe(422);
    expect(messageOf(answer)).toContain(rule);
    expect((await node()).metadata.annotations).toBeUndefined();
  });

  it('of a node is refused by default, and bounded by maxPlannedSilenceSeconds of our clock', async () => {
    const none = await world();
    const refused = await none.annotate({ [UNTIL]: none.at(10) }, 'n1');
    expect(refused.code).toBe(422);
    expect(messageOf(refused)).toContain('maxPlannedSilenceSeconds of the policy is 0');
    const { at, annotate } = await world(3_600);
    expect((await annotate({ [UNTIL]: at(3_600) }, 'n1')).code).toBe(200);
    const late = await annotate({ [UNTIL]: at(3_601) }, 'n1');
    expect(late.code).toBe(422);
    expect(messageOf(late)).toContain(`must be at most 3600 s ahead: ${at(3_600)}`);
  });

  it('of a person does not stop writes of the node', async () => {
    const { at, annotate, api } = await world();
    await annotate({ [UNTIL]: at(86_400) });
    const body = { metadata: { labels: { link: 'cell' } } };
    const headers = { authorization: 'Bearer n1' };
    expect((await api.send('PATCH', '/api/v1/nodes/n1', { contentType: MERGE, body, headers })).code).toBe(200);
  });

  it('has its marks until it is removed', async () => {
    const { at, annotate, node } = await world();
    await annotate({ [UNTIL]: at(600) });
    await annotate({ [UNTIL]: null });
    const { spec, status } = await node();
    expect(spec?.taints?.map(({ key }) => key)).toEqual(['node.kubernetes.io/not-ready']);
    expect(status?.conditions).toMatchObject([{ type: 'PlannedSilence', status: 'False' }]);
  });
});

describe('a condition that our controllers set', () => {
  it.each(['PlannedSilence', 'Flapping'])('is refused from a machine, and accepted unchanged: %s', async (type) => {
    const { api, node } = await world();
    const headers = { authorization: 'Bearer n1' };
    const ready = { type: 'Ready', status: 'True' };
    const ours = { type, status: 'True', reason: 'Forged' };
    const patch = (conditions: unknown, who: object = { headers }) =>
      api.send('PATCH', '/api/v1/nodes/n1/status', {
        contentType: STRATEGIC,
        body: { status: { conditions } },
        ...who,
      });
    const refused = await patch([ready, ours]);
    expect(refused.code).toBe(403);
    expect(messageOf(refused)).toContain(`node "n1" is not allowed to modify the following conditions: ${type}`);
    expect((await node()).status?.conditions).toBeUndefined();

    expect((await patch([ours], {})).code).toBe(200);
    expect((await patch([ready])).code).toBe(200);
    const body = await node();
    expect(body.status?.conditions?.map((each) => each.type)).toEqual([type, 'Ready']);
    expect((await api.send('PUT', '/api/v1/nodes/n1/status', { body, headers })).code).toBe(200);
    expect((await patch([{ type, $patch: 'delete' }])).code).toBe(403);
  });
});
