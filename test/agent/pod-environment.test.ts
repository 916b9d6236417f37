/** Variables of containers, from the API through the agent to a process. */
import { afterEach, describe, expect, it } from 'vitest';
import { type ExecAgent, execAgent, shell, statusOf } from '../support/exec-agent.ts';

let agent: ExecAgent;
afterEach(() => agent.close());

const base64 = (text: string): string => Buffer.from(text).toString('base64');

describe('the environment of a container', () => {
  it('has values, keys of config maps and secrets, fields and resources, with references expanded', async () => {
    agent = await execAgent();
    await agent.create('configmaps', 'settings', { data: { color: 'green', 'log.level': 'warn' } });
    await agent.create('secrets', 'login', { data: { password: base64('pa$$word') } });
    const pod = await agent.bind(
      'web',
      {
        serviceAccountName: 'default',
        containers: [
          {
            name: 'main',
            ...shell('env | sort; printf "args %s" "$0"; sleep 60'),
            args: ['$(GREETING)'],
            resources: { limits: { cpu: '1500m' }, requests: { memory: '64Mi' } },
            envFrom: [{ prefix: 'CFG_', configMapRef: { name: 'settings' } }, { secretRef: { name: 'login' } }],
            env: [
              { name: 'COLOR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'color' } } },
              { name: 'GREETING', value: 'hello $(COLOR) $(CFG_color) $$(COLOR) $(ABSENT) $(KUBERNETES_SERVICE_HOST)' },
              { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
              { name: 'IP', valueFrom: { fieldRef: { fieldPath: 'status.podIP' } } },
              { name: 'APP', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
              { name: 'ACCOUNT', valueFrom: { fieldRef: { fieldPath: 'spec.serviceAccountName' } } },
              { name: 'CPU', valueFrom: { resourceFieldRef: { resource: 'limits.cpu' } } },
              { name: 'CPU_MILLI', valueFrom: { resourceFieldRef: { resource: 'limits.cpu', divisor: '1m' } } },
              { name: 'MEMORY', valueFrom: { resourceFieldRef: { resource: 'requests.memory', divisor: '1Mi' } } },
              { name: 'MEMORY_MAX', valueFrom: { resourceFieldRef: { resource: 'limits.memory', divisor: '1Gi' } } },
              { name: 'OPTIONAL', valueFrom: { secretKeyRef: { name: 'absent', key: 'k', optional: true } } },
            ],
          },
        ],
      },
      { labels: { app: 'shop' } },
    );
    const output = await agent.outputHas(pod, 'args ');
    const variables = output.split('\n').filter((line) => !line.startsWith('NODEKEEPER_'));
    expect(variables).toEqual(
      expect.arrayContaining([
        'ACCOUNT=default',
        'APP=shop',
        'CFG_color=green',
        'COLOR=green',
        'CPU=2',
        'CPU_MILLI=1500',
        'GREETING=hello green green $(COLOR) $(ABSENT) api.example',
        'IP=127.0.0.1',
        'KUBERNETES_SERVICE_PORT=443',
        'MEMORY=64',
        'MEMORY_MAX=4',
        'NODE=edge-1',
        'password=pa$$word',
      ]),
    );
    expect(output).toContain('args hello green green');
    expect(output).not.toContain('OPTIONAL');
  });

  it('waits for a missing object or key with the texts of a kubelet, and starts when it exists', async () => {
    agent = await execAgent(20);
    const spec = (env: unknown) => ({ containers: [{ name: 'main', ...shell('echo "$COLOR"; sleep 60'), env }] });
    const fromKey = [{ name: 'COLOR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'color' } } }];
    const pod = await agent.bind('web', spec(fromKey));
    await agent.eventSeen('web: Warning Failed Error: configmap "settings" not found');
    const waiting = await agent.statusHas('web', 'the container waits', (each) => {
      return statusOf(each, 'main')?.state?.waiting?.reason === 'CreateContainerConfigError';
    });
    expect(statusOf(waiting, 'main')?.state?.waiting?.message).toBe('configmap "settings" not found');
    expect(waiting.status?.phase).toBe('Pending');
    await agent.create('configmaps', 'settings', { data: { size: '7' } });
    await agent.eventSeen("Error: couldn't find key color in ConfigMap default/settings");
    await agent.replace('configmaps', 'settings', { data: { color: 'red' } });
    await agent.outputHas(pod, 'red');
    await agent.bind('secretive', spec([{ name: 'COLOR', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }]));
    await agent.eventSeen('secretive: Warning Failed Error: secret "s" not found');
  });

  it('skips keys that are no names of variables, and reports them', async () => {
    agent = await execAgent();
    await agent.create('configmaps', 'settings', { data: { '1st': 'x', good: 'y', '2nd': 'z' } });
    const envFrom = [{ configMapRef: { name: 'settings' } }, { configMapRef: { name: 'absent', optional: true } }];
    const pod = await agent.bind('web', { containers: [{ name: 'main', ...shell('env; echo end'), envFrom }] });
    const output = await agent.outputHas(pod, 'end');
    expect(output).toContain('good=y');
    expect(output).not.toContain('1st');
    await agent.eventSeen(
      'web: Warning InvalidEnvironmentVariableNames Keys [1st, 2nd] from the EnvFrom configMap default/settings ' +
        'were skipped since they are considered invalid environment variable names.',
    );
  });

  it('has the newest values after a restart of the container', async () => {
    agent = await execAgent(50);
    await agent.create('configmaps', 'settings', { data: { color: 'green' } });
    const env = [{ name: 'COLOR', valueFrom: { configMapKeyRef: { name: 'settings', key: 'color' } } }];
    const container = { name: 'main', ...shell('echo "$COLOR"; sleep 0.2; exit 1'), env };
    const pod = await agent.bind('web', { restartPolicy: 'Always', containers: [container] });
    await agent.outputHas(pod, 'green');
    await agent.replace('configmaps', 'settings', { data: { color: 'red' } });
    const reads = agent.requests.filter((each) => each.includes('/configmaps/settings')).length;
    expect(reads).toBe(1);
    await agent.statusHas('web', 'a restart after the next read', (each) => {
      const run = statusOf(each, 'main')?.restartCount ?? 0;
      return agent.output(pod, 'main', run).includes('red');
    });
  });
});
