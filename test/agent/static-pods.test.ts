/** Static pods and their mirror pods, from files through the agent to processes and the API. */
import { existsSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { afterEach, describe, expect, it } from 'vitest';
import { type ExecAgent, execAgent, statusOf } from '../support/exec-agent.ts';
import { until } from '../support/until.ts';

let agent: ExecAgent;
afterEach(() => agent.close());

const manifest = (script: string): string => `apiVersion: v1
kind: Pod
metadata: { name: web, labels: { app: web } }
spec:
  terminationGracePeriodSeconds: 2
  containers:
    - { name: main, image: none, command: [/bin/sh, -c, "${script}"] }
`;
const write = (text: string): void => writeFileSync(join(agent.rootDirectory, 'manifests', 'web.yaml'), text);
const MIRROR = 'kubernetes.io/config.mirror';
const SOON = { withinMs: 30_000, everyMs: 50 };

describe('a static pod', () => {
  it('runs from its file, and has a mirror pod with its status', async () => {
    agent = await execAgent(20);
    write(manifest('echo up; exec sleep 600'));
    const running = await agent.statusHas('web-edge-1', 'Running', ({ status }) => status?.phase === 'Running');
    const { annotations = {}, ownerReferences, labels, uid } = running.metadata;
    expect(annotations).toMatchObject({
      [MIRROR]: annotations['kubernetes.io/config.hash'],
      'kubernetes.io/config.source': 'file',
    });
    expect(labels).toEqual({ app: 'web' });
    expect(ownerReferences).toMatchObject([{ kind: 'Node', name: 'edge-1', controller: true }]);
    expect(running.spec?.tolerations).toContainEqual({ operator: 'Exists', effect: 'NoExecute' });
    expect(uid).not.toBe(annotations[MIRROR]);
    expect(statusOf(running, 'main')).toMatchObject({ ready: true, restartCount: 0 });

    // A user cannot stop it: only its mirror is deleted, and created again.
    const containerId = statusOf(running, 'main')?.containerID;
    await agent.deletePod('web-edge-1');
    const again = await agent.statusHas('web-edge-1', 'another mirror', (pod) => {
      return pod.metadata.uid !== uid && pod.status?.phase === 'Running';
    });
    expect(statusOf(again, 'main')?.containerID).toBe(containerId);

    // A changed file is another pod.
    write(manifest('echo other; exec sleep 600'));
    await agent.statusHas('web-edge-1', 'the changed pod', (pod) => {
      const other = statusOf(pod, 'main')?.containerID;
      return pod.status?.phase === 'Running' && other !== undefined && other !== containerId;
    });

    rmSync(join(agent.rootDirectory, 'manifests', 'web.yaml'));
    await until(async () => (await agent.podOf('web-edge-1')) === undefined, {
      ...SOON,
      what: 'the mirror is deleted',
    });
  });

  it('starts while the API does not answer, and has its mirror pod afterwards', async () => {
    agent = await execAgent(20);
    agent.isOffline = true;
    const file = join(agent.rootDirectory, 'up');
    write(manifest(`touch ${file}; exec sleep 600`));
    await until(() => existsSync(file), { ...SOON, what: 'the container runs' });
    expect(await agent.podOf('web-edge-1')).toBeUndefined();
    agent.isOffline = false;
    await agent.statusHas('web-edge-1', 'Running', ({ status }) => status?.phase === 'Running');
  });
});
