import { describe, expect, it } from 'vitest';
import type { KubeAgentRelease } from '../../shared/kinds/types.ts';
import { memoryItemStore } from '../../shared/store/memory/item-store.ts';
import { apiInMemory, MERGE, STRATEGIC } from '../../test/support/api-in-memory.ts';

const RELEASES = '/apis/nodekeeper.dev/v1alpha1/agentreleases';
const UPDATES = '/apis/nodekeeper.dev/v1alpha1/nodeupdates';
const SHA = 'a'.repeat(64);
const SIGNATURE = `${'A'.repeat(86)}==`;
const artifact = { url: 'https://files.example/agent.mjs', sha256: SHA, signature: SIGNATURE };
const NAMES = ['n1', 'n2', 'n3', 'n4'];
const users = Object.fromEntries(
  NAMES.map((name) => [name, { name: `system:node:${name}`, groups: ['system:nodes'] }]),
);
const JSON_TYPE = 'application/json';

const releaseOf = (spec: object = {}) => ({
  apiVersion: 'nodekeeper.dev/v1alpha1',
  kind: 'AgentRelease',
  metadata: { name: 'agent' },
  spec: { version: '2.0.0', artifacts: [artifact], ...spec },
});

/** Ready nodes with agents of version 1.0.0; n1 is a canary. */
async function cluster(spec?: object, architectures: Readonly<Record<string, string>> = {}) {
  const items = memoryItemStore();
  let lists = 0;
  const query: typeof items.query = (request) => {
    // The first page of the first shard: once per list.
    if (request.pk === 'o#nodes#00' && request.after === undefined) lists += 1;
    return items.query(request);
  };
  const api = apiInMemory({ users, items: { ...items, query } });
  const join = async (name: string): Promise<void> => {
    const labels = name === 'n1' ? { ring: 'canary' } : {};
    const metadata = { name, labels, annotations: { 'nodekeeper.dev/agent-version': '1.0.0' } };
    const nodeInfo = { architecture: architectures[name] ?? 'amd64' };
    const status = { conditions: [{ type: 'Ready', status: 'True' }], nodeInfo };
    await api.send('POST', '/api/v1/nodes', { body: { apiVersion: 'v1', kind: 'Node', metadata, status } });
  };
  for (const name of NAMES) await join(name);
  if (spec !== undefined) await api.send('POST', RELEASES, { body: releaseOf(spec) });
  const ask = async (name: string, more: object = {}, who = name) => {
    const body = { version: '1.0.0', architecture: 'amd64', ...more };
    const headers = { authorization: `Bearer ${who}` };
    return api.send('PUT', `${UPDATES}/${name}`, { body, contentType: JSON_TYPE, headers });
  };
  const action = async (name: string, more?: object, who?: string): Promise<string> =>
    (await ask(name, more, who)).body.action;
  const updated = async (name: string): Promise<string> => {
    const annotations = { 'nodekeeper.dev/agent-version': '2.0.0' };
    await api.send('PATCH', `/api/v1/nodes/${name}`, { contentType: MERGE, body: { metadata: { annotations } } });
    return action(name, { version: '2.0.0' });
  };
  const release = async (): Promise<KubeAgentRelease> => (await api.send('GET', `${RELEASES}/agent`)).body;
  const label = async (name: string, labels: Readonly<Record<string, string | null>>) => {
    await api.send('PATCH', `/api/v1/nodes/${name}`, { contentType: MERGE, body: { metadata: { labels } } });
  };
  const ready = async (name: string, state: string) => {
    const body = { status: { conditions: [{ type: 'Ready', status: state }] } };
    await api.send('PATCH', `/api/v1/nodes/${name}/status`, { contentType: STRATEGIC, body });
  };
  const patch = async (spec: object) => {
    await api.send('PATCH', `${RELEASES}/agent`, { contentType: MERGE, body: { spec } });
  };
  /** Lists of the Nodes in an hour in which each of the nodes asks every minute. */
  const listsPerHour = async (names: readonly string[], expected: string, more?: object): Promise<number> => {
    lists = 0;
    for (let minute = 0; minute < 60; minute += 1) {
      api.advance(60_000);
      for (const name of names) expect(await action(name, more)).toBe(expected);
    }
    return lists;
  };
  return { api, join, ask, action, updated, release, label, ready, patch, listsPerHour, lists: () => lists };
}

describe('an AgentRelease', () => {
  it('is validated field by field', async () => {
    const { api } = await cluster();
    const spec = {
      version: '../2',
      artifacts: [{ ...artifact, url: 'ftp://x/y', sha256: 'A', signature: '' }, artifact],
      waves: [{ nodeSelector: { 'a b': 'c' } }],
      maxUnavailable: 0,
    };
    const answer = await api.send('POST', RELEASES, { body: releaseOf(spec) });
    expect(answer.code).toBe(422);
    expect(answer.body.details.causes.map(({ field }: { field: string }) => field)).toEqual([
      'spec.version',
      'spec.artifacts[0].url',
      'spec.artifacts[0].sha256',
      'spec.artifacts[0].signature',
      'spec.artifacts[1].architecture',
      'spec.waves[0].nodeSelector',
      'spec.maxUnavailable',
    ]);
  });

  it('has one node at a time by default, and counts its nodes', async () => {
    const { api, action, release } = await cluster({});
    expect(await action('n2')).toBe('update');
    expect((await release()).status).toMatchObject({ nodes: 4, updated: 0, wave: 0, updating: [{ node: 'n2' }] });
    const table = await api.send('GET', RELEASES, { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' });
    expect(table.body.rows[0].cells).toEqual(['agent', '2.0.0', 4, 0, 1, 0, 0, '1 of 1', 'false', '0s']);
  });
});

describe('a node that asks', () => {
  it('gets the artifact, again and again until it reports the version', async () => {
    const { ask, action, updated, release } = await cluster({});
    const first = await ask('n2');
    expect(first.body).toEqual({
      kind: 'NodeUpdateAnswer',
      apiVersion: 'nodekeeper.dev/v1alpha1',
      action: 'update',
      release: { name: 'agent', version: '2.0.0', ...artifact },
    });
    expect((await ask('n2')).body).toEqual(first.body);
    expect(await action('n3')).toBe('wait');
    expect(await updated('n2')).toBe('none');
    expect(await action('n3')).toBe('update');
    expect((await release()).status).toMatchObject({ updated: 1, updating: [{ node: 'n3' }] });
  });

  it('is one of two that ask for the last place at the same time', async () => {
    const { action, release } = await cluster({ maxUnavailable: 1 });
    const actions = await Promise.all(['n1', 'n2', 'n3', 'n4'].map((name) => action(name)));
    expect(actions.toSorted()).toEqual(['update', 'wait', 'wait', 'wait']);
    expect((await release()).status?.updating).toHaveLength(1);
  });

  it('waits for the waves before its own', async () => {
    const waves = [{ name: 'canary', nodeSelector: { ring: 'canary' } }, { name: 'rest' }];
    const { api, action, updated, release } = await cluster({ waves, maxUnavailable: '100%' });
    expect(await action('n2')).toBe('wait');
    expect(await action('n1')).toBe('update');
    expect(await updated('n1')).toBe('none');
    api.advance(61_000);
    expect(await action('n2')).toBe('update');
    expect(await action('n3')).toBe('update');
    expect((await release()).status).toMatchObject({ wave: 1, updated: 1 });
  });

  it('does not count as updated before all are, and then the release is complete', async () => {
    const { api, action, updated, release } = await cluster({ maxUnavailable: 4 });
    for (const name of NAMES) expect(await action(name)).toBe('update');
    for (const name of NAMES.slice(1)) await updated(name);
    expect((await release()).status).toMatchObject({ nodes: 4, updated: 3, wave: 0 });
    await updated('n1');
    expect((await release()).status).toMatchObject({ nodes: 4, updated: 4, wave: 0, updating: [], failed: [] });
    api.advance(60_000);
    await updated('n2');
    expect((await release()).status).toMatchObject({ nodes: 4, updated: 4, wave: 1 });
  });

  it('keeps its place after a failure, which stops the release', async () => {
    const { api, action, release } = await cluster({});
    await action('n2');
    const failed = { sha256: SHA, message: 'no accepted heartbeat in 120 s' };
    expect(await action('n2', { failed })).toBe('none');
    expect(await action('n3')).toBe('wait');
    expect((await release()).status?.failed).toMatchObject([{ node: 'n2', message: failed.message }]);
    const other = { ...artifact, sha256: 'b'.repeat(64) };
    const body = { spec: { version: '2.0.1', artifacts: [other] } };
    await api.send('PATCH', `${RELEASES}/agent`, { contentType: MERGE, body });
    expect(await action('n3')).toBe('update');
    expect((await release()).status?.failed).toEqual([]);
  });

  it('gives up its place when its Node is deleted', async () => {
    const { api, action } = await cluster({});
    expect(await action('n2')).toBe('update');
    await api.send('DELETE', '/api/v1/nodes/n2');
    expect(await action('n3')).toBe('wait');
    api.advance(61_000);
    expect(await action('n3')).toBe('update');
  });

  it('gives up its place when its labels put it into no wave', async () => {
    const { api, action, release } = await cluster({ waves: [{ nodeSelector: { pool: 'edge' } }] });
    const pool = async (name: string, value: string | null) => {
      const body = { metadata: { labels: { pool: value } } };
      await api.send('PATCH', `/api/v1/nodes/${name}`, { contentType: MERGE, body });
    };
    for (const name of ['n2', 'n3']) await pool(name, 'edge');
    expect(await action('n2')).toBe('update');
    expect(await action('n2', { failed: { sha256: SHA, message: 'no heartbeats' } })).toBe('none');
    expect(await action('n3')).toBe('wait');
    await pool('n2', null);
    api.advance(61_000);
    expect(await action('n3')).toBe('update');
    expect((await release()).status).toMatchObject({ nodes: 1, updating: [{ node: 'n3' }], failed: [] });
  });

  it('does not wait for nodes of an earlier release', async () => {
    const waves = [{ name: 'canary', nodeSelector: { ring: 'canary' } }, { name: 'rest' }];
    const { api, action, release } = await cluster({ waves });
    const first = { ...releaseOf({ waves: waves.slice(0, 1), paused: true }), metadata: { name: 'a' } };
    await api.send('POST', RELEASES, { body: first });
    expect(await action('n1')).toBe('wait');
    expect(await action('n2')).toBe('update');
    expect((await release()).status).toMatchObject({ nodes: 3, wave: 1, updating: [{ node: 'n2' }] });
  });

  it('waits while the release is paused, also if it was granted before', async () => {
    const { api, action, release } = await cluster({});
    await action('n2');
    await api.send('PATCH', `${RELEASES}/agent`, { contentType: MERGE, body: { spec: { paused: true } } });
    expect(await action('n2')).toBe('wait');
    expect((await release()).status?.updating).toEqual([]);
  });

  it('gets nothing without a release, without a Node and outside all waves', async () => {
    const { ask, api } = await cluster();
    expect((await ask('n2')).body).toMatchObject({ action: 'none', reason: 'there is no release' });
    await api.send('POST', RELEASES, { body: releaseOf({ waves: [{ nodeSelector: { ring: 'canary' } }] }) });
    expect((await ask('n2')).body).toMatchObject({ action: 'none', reason: 'no release is for this node' });
    await api.send('DELETE', '/api/v1/nodes/n1');
    expect((await ask('n1')).body).toMatchObject({ action: 'none', reason: 'the Node does not exist' });
  });
});

describe('a node without an artifact for its architecture', () => {
  const amd64 = { ...artifact, architecture: 'amd64' };
  const waves = [{ name: 'canary', nodeSelector: { ring: 'canary' } }, { name: 'rest' }];
  const table = { accept: 'application/json;as=Table;v=v1;g=meta.k8s.io' };

  it('is skipped and named, and the next wave begins', async () => {
    const { api, ask, action, updated, release } = await cluster({ waves, artifacts: [amd64] }, { n1: 'arm64' });
    const answer = await ask('n1', { architecture: 'arm64' });
    expect(answer.body).toMatchObject({ action: 'none', reason: 'no artifact for arm64' });
    expect(await action('n2')).toBe('update');
    const { status } = await release();
    expect(status).toMatchObject({ nodes: 4, skipped: 1, wave: 1 });
    expect(status?.skippedNodes).toEqual([{ node: 'n1', reason: 'no artifact for arm64' }]);
    expect(status?.conditions).toMatchObject([
      {
        type: 'NodesSkipped',
        status: 'True',
        reason: 'NotInstallable',
        message: 'Nodes that keep their version: n1 (no artifact for arm64).',
      },
    ]);
    const listed = await api.send('GET', RELEASES, table);
    expect(listed.body.rows[0].cells).toEqual(['agent', '2.0.0', 4, 0, 1, 0, 1, 'rest', 'false', '0s']);
    for (const name of ['n2', 'n3', 'n4']) {
      expect(await action(name)).toBe('update');
      await updated(name);
    }
    api.advance(60_000);
    await updated('n4');
    expect((await release()).status).toMatchObject({ nodes: 4, updated: 3, skipped: 1, wave: 2 });
  });

  it('updates when the release has an artifact for it, and the condition ends', async () => {
    const { api, action, release } = await cluster({ waves, artifacts: [amd64] }, { n1: 'arm64' });
    expect(await action('n1', { architecture: 'arm64' })).toBe('none');
    const arm64 = { ...artifact, architecture: 'arm64', sha256: 'b'.repeat(64) };
    const body = { spec: { artifacts: [amd64, arm64] } };
    await api.send('PATCH', `${RELEASES}/agent`, { contentType: MERGE, body });
    expect(await action('n1', { architecture: 'arm64' })).toBe('update');
    const { status } = await release();
    expect(status).toMatchObject({ skipped: 0, skippedNodes: [], wave: 0 });
    expect(status?.conditions).toMatchObject([{ type: 'NodesSkipped', status: 'False', reason: 'AllInstallable' }]);
  });
});

describe('a downgrade', () => {
  const downgrade = { ...artifact, downgradeSignature: SIGNATURE };

  it('is refused without allowDowngrade, and without a signature for it', async () => {
    const { api } = await cluster({});
    const patch = async (spec: object) => {
      const { body } = await api.send('PATCH', `${RELEASES}/agent`, { contentType: MERGE, body: { spec } });
      return body.details?.causes ?? body.kind;
    };
    expect(await patch({ version: '1.9.0' })).toEqual([
      {
        reason: 'FieldValueInvalid',
        field: 'spec.version',
        message: 'Invalid value: "1.9.0": must not be older than 2.0.0 unless spec.allowDowngrade is true',
      },
    ]);
    expect(await patch({ version: '1.9.0', allowDowngrade: true })).toMatchObject([
      { reason: 'FieldValueRequired', field: 'spec.artifacts[0].downgradeSignature' },
    ]);
    expect(await patch({ artifacts: [{ ...artifact, downgradeSignature: 'x' }] })).toMatchObject([
      { reason: 'FieldValueInvalid', field: 'spec.artifacts[0].downgradeSignature' },
    ]);
    expect(await patch({ version: '1.9.0', allowDowngrade: true, artifacts: [downgrade] })).toBe('AgentRelease');
  });

  it('skips nodes with a newer version, unless it is allowed', async () => {
    const { api, ask, action, release } = await cluster({});
    const newer = { version: '2.1.0' };
    const reason = 'runs the newer version 2.1.0, and allowDowngrade is not set';
    expect((await ask('n2', newer)).body).toMatchObject({ action: 'none', reason });
    expect((await release()).status?.skippedNodes).toEqual([{ node: 'n2', reason }]);
    const body = { spec: { allowDowngrade: true, artifacts: [downgrade] } };
    await api.send('PATCH', `${RELEASES}/agent`, { contentType: MERGE, body });
    expect((await ask('n2', newer)).body).toMatchObject({
      action: 'update',
      release: { version: '2.0.0', downgradeSignature: SIGNATURE },
    });
    expect(await action('n3')).toBe('wait');
  });
});

it('stores every failure of its nodes, however long their names and messages are', async () => {
  const { api } = await cluster({ maxUnavailable: '100%' });
  const names = Array.from({ length: 240 }, (_, index) => `e${index}.`.padEnd(253, 'x'));
  for (const name of names) {
    const metadata = { name, annotations: { 'nodekeeper.dev/agent-version': '1.0.0' } };
    const status = { conditions: [{ type: 'Ready', status: 'True' }] };
    await api.send('POST', '/api/v1/nodes', { body: { apiVersion: 'v1', kind: 'Node', metadata, status } });
  }
  const ask = async (name: string, more: object = {}) => {
    const body = { version: '1.0.0', architecture: 'amd64', ...more };
    const answer = await api.send('PUT', `${UPDATES}/${name}`, { body, contentType: JSON_TYPE });
    expect([name, answer.code]).toEqual([name, 200]);
    return answer.body;
  };
  const granted: string[] = [];
  let reason = '';
  for (const name of names) {
    const answer = await ask(name);
    if (answer.action === 'update') granted.push(name);
    else reason = answer.reason;
  }
  expect(reason).toBe('the status of the release can list no further node');
  expect(granted.length).toBeGreaterThan(150);
  const message = '\u0001"\u{1F4A5}é '.repeat(100);
  for (const name of names) expect((await ask(name, { failed: { sha256: SHA, message } })).action).toBe('none');
  const { status }: KubeAgentRelease = (await api.send('GET', `${RELEASES}/agent`)).body;
  expect(status?.updating).toEqual([]);
  const failed = status?.failed ?? [];
  expect(failed.map(({ node }) => node)).toEqual(granted);
  expect(failed.filter((each) => each.message !== '')).toHaveLength(50);
  for (const each of failed) expect(JSON.stringify(each.message).length).toBeLessThanOrEqual(202);
});

describe('the rights of a machine', () => {
  it('are its own report: no other, and no release', async () => {
    const { api, ask } = await cluster({});
    expect((await ask('n2', {}, 'n3')).code).toBe(403);
    const headers = { authorization: 'Bearer n2' };
    const body = { spec: { paused: true } };
    for (const path of [`${RELEASES}/agent`, `${RELEASES}/agent/status`]) {
      expect((await api.send('PATCH', path, { contentType: MERGE, body, headers })).code).toBe(403);
    }
    expect((await api.send('GET', `${RELEASES}/agent`, { headers })).code).toBe(403);
  });

  it.each([
    [{ version: '' }, 'version must be a text of 1 to 63 characters'],
    [{ architecture: 7 }, 'architecture must be a text of 1 to 63 characters'],
    [{ failed: { sha256: 'x' } }, 'failed.sha256 must be a SHA-256 in lower-case hex'],
  ])('end where the report is malformed: %j', async (more, message) => {
    const { ask } = await cluster({});
    const answer = await ask('n2', more);
    expect([answer.code, answer.body.message]).toEqual([400, message]);
  });
});

it('writes nothing for a node that waits or is up to date', async () => {
  const { action, updated, release } = await cluster({});
  await action('n2');
  await updated('n2');
  await action('n3');
  const { resourceVersion } = (await release()).metadata;
  await action('n4');
  await action('n2', { version: '2.0.0' });
  expect((await release()).metadata.resourceVersion).toBe(resourceVersion);
});

describe('the nodes are listed twice per hour', () => {
  const failed = { sha256: SHA, message: 'no accepted heartbeat in 120 s' };
  const waves = [{ name: 'canary', nodeSelector: { ring: 'canary' } }, { name: 'rest' }];

  it('while the release is paused', async () => {
    const { listsPerHour } = await cluster({ paused: true });
    expect(await listsPerHour(['n2', 'n3'], 'wait')).toBe(2);
  });

  it('while maxUnavailable nodes have failed', async () => {
    const { action, listsPerHour } = await cluster({ maxUnavailable: 2 });
    for (const name of ['n1', 'n2']) {
      expect(await action(name)).toBe('update');
      expect(await action(name, { failed })).toBe('none');
    }
    expect(await listsPerHour(['n3', 'n4'], 'wait')).toBe(2);
  });

  it('while maxUnavailable nodes update', async () => {
    const { action, listsPerHour } = await cluster({ maxUnavailable: '25%' });
    expect(await action('n2')).toBe('update');
    expect(await listsPerHour(['n1', 'n3', 'n4'], 'wait')).toBe(2);
  });

  it('while a failed node keeps its wave incomplete', async () => {
    const { action, listsPerHour } = await cluster({ waves, maxUnavailable: '100%' });
    expect(await action('n1')).toBe('update');
    expect(await action('n1', { failed })).toBe('none');
    expect(await listsPerHour(['n2', 'n3', 'n4'], 'wait')).toBe(2);
  });

  it.each([
    ['failed', { failed }],
    ['are skipped', { version: '2.1.0' }],
  ])('while only nodes that %s report', async (_, report) => {
    const { listsPerHour } = await cluster({ maxUnavailable: 4 });
    expect(await listsPerHour(NAMES, 'none', report)).toBe(2);
  });

  it.each([
    ['the release is complete', NAMES],
    ['the last node has its place and does not update', NAMES.slice(0, 3)],
  ])('while %s', async (_, done) => {
    const { action, updated, listsPerHour } = await cluster({ maxUnavailable: 4 });
    for (const name of NAMES) await action(name);
    for (const name of done) await updated(name);
    expect(await listsPerHour(done, 'none', { version: '2.0.0' })).toBe(2);
  });

  it('while a node that was granted the update asks again', async () => {
    const { action, listsPerHour } = await cluster({ maxUnavailable: 2 });
    expect(await action('n2')).toBe('update');
    expect(await listsPerHour(['n2'], 'update')).toBe(2);
  });
});

it.each([
  ['the release is complete', NAMES],
  ['one node does not update', NAMES.slice(0, 3)],
])('lists the nodes once per minute while a node reports one version and then another, and %s', async (_, done) => {
  const { api, action, updated, release, lists } = await cluster({ maxUnavailable: 4 });
  for (const name of NAMES) await action(name);
  for (const name of done) await updated(name);
  api.advance(60_000);
  await updated('n1');
  const before = lists();
  for (let second = 0; second < 180; second += 1) {
    api.advance(1_000);
    expect(await action('n1')).toBe('update');
    await action('n1', { version: '2.0.0' });
  }
  expect(lists() - before).toBeLessThanOrEqual(3);
  expect((await release()).status?.updated).toBeLessThanOrEqual(4);
});

it('counts again when a node of an earlier wave updates or failed since the last list', async () => {
  const waves = [{ name: 'canary', nodeSelector: { ring: 'canary' } }, { name: 'rest' }];
  const { api, action, ready } = await cluster({ waves, maxUnavailable: '100%' });
  await ready('n1', 'Unknown');
  // The wave of the canaries waits for no silent node.
  expect(await action('n2')).toBe('update');
  api.advance(30_000);
  await ready('n1', 'True');
  expect(await action('n1')).toBe('update');
  api.advance(60_000);
  expect(await action('n3')).toBe('wait');
  expect(await action('n1', { failed: { sha256: SHA, message: 'no accepted heartbeat in 120 s' } })).toBe('none');
  api.advance(60_000);
  expect(await action('n3')).toBe('wait');
});

describe('a release that waited for long continues with the next question', () => {
  const failed = { sha256: SHA, message: 'no accepted heartbeat in 120 s' };
  const waves = [{ name: 'canary', nodeSelector: { ring: 'canary' } }, { name: 'rest' }];
  /** n1 updates or has failed, and n2 has asked for 10 minutes. */
  async function held(spec: object, { ring = 'rest', ...report }: { ring?: string; failed?: object } = {}) {
    const all = await cluster(spec);
    await all.label('n2', { ring });
    expect(await all.action('n1')).toBe('update');
    if (report.failed !== undefined) expect(await all.action('n1', report)).toBe('none');
    for (let minute = 0; minute < 10; minute += 1) {
      expect(await all.action('n2')).toBe('wait');
      all.api.advance(60_000);
    }
    return all;
  }

  it('after the node is updated', async () => {
    const { action, updated } = await held({});
    expect(await updated('n1')).toBe('none');
    expect(await action('n2')).toBe('update');
  });

  it('after the wave is complete', async () => {
    const { action, updated } = await held({ waves, maxUnavailable: '100%' }, { failed });
    expect(await updated('n1')).toBe('none');
    expect(await action('n2')).toBe('update');
  });

  it.each([
    ['place', {}],
    ['wave', { waves, maxUnavailable: '100%' }],
  ])('after the failed Node that kept the %s is deleted', async (_, spec) => {
    const { api, action } = await held(spec, { failed });
    await api.send('DELETE', '/api/v1/nodes/n1');
    expect(await action('n2')).toBe('update');
  });

  it('after the labels of the failed node put it into no wave', async () => {
    const { label, action } = await held({ waves: waves.slice(0, 1) }, { failed, ring: 'canary' });
    await label('n1', { ring: 'rest' });
    expect(await action('n2')).toBe('update');
  });

  it('after its spec is changed', async () => {
    const { patch, action } = await held({}, { failed });
    await patch({ maxUnavailable: 2 });
    expect(await action('n2')).toBe('update');
  });

  it('within three minutes after one of 25 failed Nodes is deleted', async () => {
    const all = await cluster({ maxUnavailable: 25 });
    const names = Array.from({ length: 25 }, (_, index) => `e${index}`);
    for (const name of names) await all.join(name);
    for (const name of names) await all.action(name, { failed }, 'token');
    const { api, action } = all;
    for (let minute = 0; minute < 10; minute += 1) {
      expect(await action('n1')).toBe('wait');
      api.advance(60_000);
    }
    await api.send('DELETE', '/api/v1/nodes/e13');
    const actions: string[] = [];
    for (let minute = 0; minute < 3; minute += 1) {
      actions.push(await action('n1'));
      api.advance(60_000);
    }
    expect(actions).toContain('update');
  });

  it('with the first wave, where a node became Ready in the meantime', async () => {
    const { api, ready, action, updated } = await cluster({ waves });
    await ready('n1', 'Unknown');
    expect(await action('n2')).toBe('update');
    expect(await action('n3')).toBe('wait');
    await ready('n1', 'True');
    api.advance(600_000);
    expect(await action('n3')).toBe('wait');
    expect(await updated('n2')).toBe('none');
    expect(await action('n3')).toBe('wait');
    expect(await action('n1')).toBe('update');
  });
});
