/** Volumes of pods, from the API through the agent to a process with a mount namespace of its own. */
import {
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type ExecAgent, execAgent, shell, statusOf } from '../support/exec-agent.ts';
import { until } from '../support/until.ts';

let agent: ExecAgent;
/** Contains the mount points. */
let points: string;
beforeEach(() => {
  points = mkdtempSync(join(tmpdir(), 'nodekeeper-points-'));
});
afterEach(async () => {
  await agent.close();
  rmSync(points, { recursive: true, force: true });
});

const base64 = (text: string): string => Buffer.from(text).toString('base64');
const main = (script: string, volumeMounts: unknown[], more: Record<string, unknown> = {}) => ({
  name: 'main',
  ...shell(script),
  volumeMounts,
  ...more,
});

describe('the resolver of a pod', () => {
  it('is that of the cluster for pods that use it, and that of the machine for others', async () => {
    const text = 'search default.svc.cluster.local\nnameserver 169.254.20.10\n';
    agent = await execAgent(1, { resolverOf: ({ spec }) => (spec?.hostNetwork === true ? undefined : text) });
    const print = [main('cat /etc/resolv.conf; echo end; sleep 60', [])];
    expect(await agent.outputHas(await agent.bind('own', { containers: print }), 'end')).toBe(`${text}end\n`);
    const ofMachine = await agent.bind('machine', { hostNetwork: true, containers: print });
    expect(await agent.outputHas(ofMachine, 'end')).toBe(`${readFileSync('/etc/resolv.conf', 'utf8')}end\n`);
  });
});

describe('the volumes of a pod', () => {
  it('have keys, modes, fields and tokens as files, in the mount namespace of the container alone', async () => {
    agent = await execAgent();
    await agent.create('configmaps', 'settings', { data: { a: '1', b: '2' }, binaryData: { c: base64('3') } });
    await agent.create('secrets', 'login', { data: { password: base64('secret') } });
    const volumes = [
      {
        name: 'cfg',
        configMap: {
          name: 'settings',
          items: [
            { key: 'b', path: 'x/y', mode: 0o400 },
            { key: 'c', path: 'c' },
          ],
        },
      },
      { name: 'login', secret: { secretName: 'login', defaultMode: 0o440 } },
      { name: 'self', downwardAPI: { items: [{ path: 'labels', fieldRef: { fieldPath: 'metadata.labels' } }] } },
      {
        name: 'all',
        projected: {
          sources: [
            { serviceAccountToken: { path: 'token', expirationSeconds: 600, audience: 'shop' } },
            { configMap: { name: 'settings', items: [{ key: 'a', path: 'a' }] } },
            { secret: { name: 'absent', optional: true } },
            {
              downwardAPI: {
                items: [{ path: 'cpu', resourceFieldRef: { containerName: 'main', resource: 'limits.cpu' } }],
              },
            },
          ],
        },
      },
    ];
    const script = `cd ${points}; cat cfg/x/y cfg/c; stat -c ' %a' cfg/x/y -L; cat login/password; stat -Lc ' %a' login/password
      cat self/labels; echo; cat all/a all/cpu; echo; cut -c1-3 all/token; touch cfg/new 2>&1; readlink cfg/c; echo end; sleep 60`;
    const mounts = volumes.map(({ name }) => ({ name, mountPath: join(points, name) }));
    const pod = await agent.bind(
      'web',
      {
        serviceAccountName: 'default',
        volumes,
        containers: [main(script, mounts, { resources: { limits: { cpu: '1' } } })],
      },
      { labels: { b: 'two', a: 'one' } },
    );
    const output = await agent.outputHas(pod, 'end');
    expect(output.split('\n').slice(0, 6)).toEqual(['23 400', 'secret 440', 'a="one"', 'b="two"', '11', 'eyJ']);
    expect(output).toContain('Read-only file system');
    expect(output).toContain('..data/c');
    expect(readdirSync(join(points, 'cfg'))).toEqual([]);
  });

  it('wait for an object that is missing, with the event of a kubelet', async () => {
    agent = await execAgent(20);
    const volumes = [{ name: 'cfg', configMap: { name: 'settings' } }];
    const containers = [main(`cat ${points}/a`, [{ name: 'cfg', mountPath: points }])];
    const pod = await agent.bind('web', { volumes, containers });
    await agent.eventSeen(
      'web: Warning FailedMount MountVolume.SetUp failed for volume "cfg" : configmap "settings" not found',
    );
    const waiting = await agent.statusHas('web', 'a status', (each) => each.status?.containerStatuses !== undefined);
    expect(statusOf(waiting, 'main')?.state?.waiting?.reason).toBe('ContainerCreating');
    await agent.create('configmaps', 'settings', { data: { a: 'found' } });
    await agent.outputHas(pod, 'found');
  });

  it('change at once when the object changes, while the container runs, and survive a restart of the agent', async () => {
    agent = await execAgent(200);
    await agent.create('configmaps', 'settings', { data: { a: 'old', b: 'old' } });
    const volumes = [{ name: 'cfg', configMap: { name: 'settings' } }];
    const script = `while :; do cat ${points}/a ${points}/b 2>/dev/null | tr -d '\\n'; echo; sleep 0.05; done`;
    const spec = { volumes, containers: [main(script, [{ name: 'cfg', mountPath: points }])] };
    const pod = await agent.bind('web', spec);
    await agent.outputHas(pod, 'oldold');
    await agent.replace('configmaps', 'settings', { data: { a: 'new', b: 'new' } });
    await agent.outputHas(pod, 'newnew');
    await agent.restartAgent();
    await agent.replace('configmaps', 'settings', { data: { a: 'third' } });
    await agent.outputHas(pod, 'third\n');
  });

  it('have a token that is replaced after 80 % of its life', async () => {
    agent = await execAgent(400);
    const projected = { sources: [{ serviceAccountToken: { path: 'token', expirationSeconds: 600 } }] };
    const volumes = [{ name: 'token', projected }];
    const container = main('sleep 600', [{ name: 'token', mountPath: points }]);
    const account = { serviceAccountName: 'default', automountServiceAccountToken: false };
    await agent.bind('web', { ...account, volumes, containers: [container] });
    const tokenRequests = () => agent.requests.filter((each) => each.endsWith('/serviceaccounts/default/token')).length;
    await until(() => tokenRequests() >= 2, { withinMs: 30_000, what: 'a second token' });
  });

  it('are shared by the containers of the pod, also in part, and removed with it', async () => {
    agent = await execAgent();
    const volumes = [
      { name: 'data', emptyDir: {} },
      { name: 'mem', emptyDir: { medium: 'Memory' } },
    ];
    const whole = { name: 'data', mountPath: join(points, 'all') };
    const pod = await agent.bind('web', {
      volumes,
      initContainers: [
        { ...main(`mkdir ${points}/all/deep; echo made >${points}/all/deep/file`, [whole]), name: 'make' },
      ],
      containers: [
        main(`cat ${points}/part/file; touch ${points}/part/x; sleep 60`, [
          { name: 'data', mountPath: join(points, 'part'), subPath: 'deep', readOnly: true },
          { name: 'mem', mountPath: join(points, 'mem') },
        ]),
      ],
    });
    const output = await agent.outputHas(pod, 'Read-only');
    expect(output).toContain('made');
    const directory = join(agent.rootDirectory, 'volumes', pod.metadata.uid ?? '');
    expect(statSync(join(directory, 'data')).mode & 0o777).toBe(0o777);
    expect(readdirSync(join(agent.rootDirectory, 'memory', pod.metadata.uid ?? ''))).toContain('mem');
    await agent.deletePod('web', { gracePeriodSeconds: 0 });
    await until(() => !existsSync(directory), { withinMs: 30_000, what: 'the volumes are removed' });
    expect(readdirSync(join(agent.rootDirectory, 'memory'))).toEqual([]);
  });

  it('are directories of the machine with a type that is checked', async () => {
    agent = await execAgent();
    mkdirSync(join(points, 'source'));
    writeFileSync(join(points, 'source/file'), 'from the machine');
    const hostPath = (name: string, path: string, type: string) => ({
      name,
      hostPath: { path: join(points, path), type },
    });
    const pod = await agent.bind('web', {
      volumes: [hostPath('one', 'source', 'Directory'), hostPath('two', 'made', 'DirectoryOrCreate')],
      containers: [
        main(`cat ${points}/seen/file; echo >${points}/two/new`, [
          { name: 'one', mountPath: join(points, 'seen') },
          { name: 'two', mountPath: join(points, 'two') },
        ]),
      ],
    });
    await agent.outputHas(pod, 'from the machine');
    await until(() => existsSync(join(points, 'made/new')), {
      withinMs: 30_000,
      what: 'a file in the created directory',
    });
    await agent.bind('other', {
      volumes: [hostPath('one', 'source/file', 'Directory')],
      containers: [main('true', [])],
    });
    await agent.eventSeen(`hostPath type check failed: ${points}/source/file is not a directory`);
  });

  it('evict the pod when an emptyDir exceeds its size limit', async () => {
    agent = await execAgent(100);
    const volumes = [{ name: 'cache', emptyDir: { sizeLimit: '64Ki' } }];
    const script = `head -c 100000 /dev/zero >${points}/file; sleep 600`;
    await agent.bind('web', { volumes, containers: [main(script, [{ name: 'cache', mountPath: points }])] });
    const message = 'Usage of EmptyDir volume "cache" exceeds the limit "64Ki". ';
    await agent.eventSeen(`web: Warning Evicted ${message}`);
    const failed = await agent.statusHas('web', 'Failed', ({ status }) => status?.phase === 'Failed');
    expect(failed.status).toMatchObject({ reason: 'Evicted', message });
  });
});

describe('the privileges of a container', () => {
  it('are those of its security context', async () => {
    agent = await execAgent();
    const pod = await agent.bind('web', {
      securityContext: { runAsUser: 1234, runAsGroup: 2345, fsGroup: 3456, supplementalGroups: [4567] },
      volumes: [{ name: 'data', emptyDir: {} }],
      containers: [
        main(
          `id -u; id -g; id -G; echo x >${points}/f && stat -c %g ${points}/f; touch /usr/x; grep -i NoNewPrivs /proc/self/status; grep CapBnd /proc/self/status; echo end`,
          [{ name: 'data', mountPath: points }],
          {
            securityContext: {
              readOnlyRootFilesystem: true,
              allowPrivilegeEscalation: false,
              runAsNonRoot: true,
              capabilities: { drop: ['ALL'] },
            },
          },
        ),
      ],
    });
    const output = await agent.outputHas(pod, 'end');
    expect(output.split('\n').slice(0, 3)).toEqual(['1234', '2345', '2345 3456 4567']);
    expect(output).toContain('\n3456\n');
    expect(output).toContain('Read-only file system');
    expect(output).toMatch(/NoNewPrivs:\s+1/);
    expect(output).toMatch(/CapBnd:\s+0+\n/);
  });

  it('are refused with the text of a kubelet when the container would run as root', async () => {
    agent = await execAgent();
    await agent.bind('web', { containers: [main('true', [], { securityContext: { runAsNonRoot: true } })] });
    await agent.eventSeen(
      /Error: container has runAsNonRoot and image will run as root \(pod: "web_default\(.*\)", container: main\)/,
    );
  });
});
