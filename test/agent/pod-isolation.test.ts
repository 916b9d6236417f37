/** What a pod can reach by its variables, its mounts, and the links in its volumes. */
import { chmodSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ExecAgent, execAgent, shell, statusOf } from '../support/exec-agent.ts';

const data = [{ name: 'data', emptyDir: {} }];
const securityContext = { runAsUser: 1234, runAsGroup: 2345 };

let agent: ExecAgent;
/** Contains the mount points. */
let points: string;
beforeEach(async () => {
  points = mkdtempSync(join(tmpdir(), 'nodekeeper-points-'));
  chmodSync(points, 0o777);
  agent = await execAgent();
});
afterEach(async () => {
  await agent.close();
  rmSync(points, { recursive: true, force: true });
});

const main = (script: string, volumeMounts: unknown[], more: Record<string, unknown> = {}) => ({
  name: 'main',
  ...shell(script),
  volumeMounts,
  ...more,
});

const terminated = async (reason: string) => {
  const pod = await agent.statusHas('web', reason, (each) => ended(each)?.reason === reason);
  return ended(pod)?.message;
};
const ended = (pod: Parameters<typeof statusOf>[0]) => {
  const { state, lastState } = statusOf(pod, 'main') ?? {};
  return state?.terminated ?? lastState?.terminated;
};

describe('the set-up of a container', () => {
  it('runs no program that a variable of the container selects', async () => {
    mkdirSync(join(points, 'bin'));
    for (const name of ['mount', 'mkdir', 'readlink', 'stat']) {
      const path = join(points, 'bin', name);
      writeFileSync(path, `#!/bin/sh\n/usr/bin/id -u >>${points}/ran-as\nexec /usr/bin/${name} "$@"\n`, {
        mode: 0o755,
      });
    }
    const env = [
      { name: 'PATH', value: `${join(points, 'bin')}:/usr/bin:/bin` },
      { name: 'LD_PRELOAD', value: '/absent.so' },
      { name: 'UID', value: 'own' },
      { name: 'a.b', value: "it's $x" },
      { name: 'NODEKEEPER_CONTAINER', value: 'of another pod' },
    ];
    const command = { command: ['/usr/bin/env'], args: [] };
    const mounts = [{ name: 'data', mountPath: join(points, 'data') }];
    const pod = await agent.bind('web', {
      volumes: data,
      containers: [main('', mounts, { ...command, env, securityContext })],
    });
    const output = await agent.outputHas(pod, 'UID=own\n');
    expect(existsSync(join(points, 'ran-as'))).toBe(false);
    expect(output).toContain(`PATH=${points}/bin:/usr/bin:/bin\n`);
    expect(output).toContain('LD_PRELOAD=/absent.so\n');
    expect(output).toContain('UID=own\n');
    expect(output).toContain("a.b=it's $x\n");
    expect(output).not.toContain('NODEKEEPER_ENV_');
    expect(output).not.toContain('of another pod');
  });

  it('needs no PATH', async () => {
    const env = [{ name: 'PATH', value: '/absent' }];
    const mounts = [{ name: 'data', mountPath: join(points, 'data') }];
    const container = { ...main('', mounts, { env }), command: ['/bin/sh', '-c', 'echo "path $PATH"; /bin/sleep 60'] };
    const pod = await agent.bind('web', { volumes: data, containers: [container] });
    await agent.outputHas(pod, 'path /absent');
  });

  it('mounts a volume within another', async () => {
    await agent.create('configmaps', 'settings', { data: { a: 'inner' } });
    const mounts = [
      { name: 'data', mountPath: join(points, 'data') },
      { name: 'cfg', mountPath: join(points, 'data/cfg') },
      { name: 'cfg', mountPath: join(points, 'data/one'), subPath: 'a' },
    ];
    const pod = await agent.bind('web', {
      volumes: [...data, { name: 'cfg', configMap: { name: 'settings' } }],
      containers: [main(`cat ${points}/data/cfg/a ${points}/data/one; sleep 60`, mounts)],
    });
    await agent.outputHas(pod, 'innerinner');
  });

  it('replaces no program that later runs as the agent, also through a link in a volume', async () => {
    const mounts = [
      { name: 'data', mountPath: join(points, 'data') },
      { name: 'data', mountPath: join(points, 'data/link') },
    ];
    await agent.bind('web', {
      restartPolicy: 'Never',
      volumes: data,
      initContainers: [{ ...main(`ln -s /usr/bin ${points}/data/link`, mounts.slice(0, 1)), name: 'plant' }],
      containers: [main('true', mounts, { securityContext })],
    });
    expect(await terminated('ContainerCannotRun')).toContain(`volumeMount ${points}/data/link would replace programs`);
  });

  it('mounts nothing that a link in a mounted volume leads to', async () => {
    mkdirSync(join(points, 'machine'));
    writeFileSync(join(points, 'machine/file'), 'of the machine');
    const whole = { name: 'data', mountPath: join(points, 'all') };
    const plant = `mkdir ${points}/all/$UID_OF_POD; ln -s ${points}/machine ${points}/all/$UID_OF_POD/other`;
    await agent.bind('web', {
      restartPolicy: 'Never',
      volumes: [...data, { name: 'other', emptyDir: {} }],
      initContainers: [
        {
          ...main(plant, [whole], {
            env: [{ name: 'UID_OF_POD', valueFrom: { fieldRef: { fieldPath: 'metadata.uid' } } }],
          }),
          name: 'plant',
        },
      ],
      containers: [
        main(`cat ${points}/a/b/c/file`, [
          { name: 'data', mountPath: join(agent.rootDirectory, 'volumes') },
          { name: 'other', mountPath: join(points, 'a/b/c') },
        ]),
      ],
    });
    const message = await terminated('ContainerCannotRun');
    expect(message).toBe(`volumeMount ${points}/a/b/c: the volume changed while it was mounted`);
  });

  it('precedes its hooks, which then see its mounts', async () => {
    const volumes = Array.from({ length: 40 }, (_, index) => ({ name: `data-${index}`, emptyDir: {} }));
    const mounts = volumes.map(({ name }) => ({ name, mountPath: join(points, name) }));
    const hook = shell(`echo >${points}/data-39/hooked`);
    const lifecycle = { postStart: { exec: { command: hook.command } } };
    const script = `while [ ! -e ${points}/data-39/hooked ]; do sleep 0.1; done`;
    await agent.bind('web', { restartPolicy: 'Never', volumes, containers: [main(script, mounts, { lifecycle })] });
    await terminated('Completed');
    expect(existsSync(join(points, 'data-39/hooked'))).toBe(false);
  });

  it('reads the end of a termination message, as a kubelet', async () => {
    const log = '/dev/termination-log';
    const script = `head -c 5000 /dev/zero | tr '\\0' a >${log}; printf end >>${log}; exit 1`;
    const mounts = [{ name: 'data', mountPath: join(points, 'data') }];
    await agent.bind('web', { restartPolicy: 'Never', volumes: data, containers: [main(script, mounts)] });
    expect(await terminated('Error')).toBe(`${'a'.repeat(4_093)}end`);
  });
});
