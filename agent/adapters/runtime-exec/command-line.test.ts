import { describe, expect, it } from 'vitest';
import { commandLine, expand } from './command-line.ts';

const pod = (spec: Record<string, unknown> = {}) => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'u-1', labels: { app: 'web' } },
  spec: { nodeName: 'edge-1', ...spec },
});

describe('variables in texts', () => {
  it('are put in where they exist, and dollars can be escaped', () => {
    expect(expand('$(A)-$(B)-$$(A)-$A', { A: 'x' })).toBe('x-$(B)-$(A)-$A');
  });
});

describe('the process of a container', () => {
  it('gets values, fields of the pod and earlier variables', () => {
    const line = commandLine(
      pod(),
      {
        name: 'c',
        command: ['/bin/serve', '--on=$(WHERE)'],
        args: ['$(GREETING)'],
        workingDir: '/srv',
        env: [
          { name: 'WHERE', valueFrom: { fieldRef: { fieldPath: 'status.hostIP' } } },
          { name: 'NODE', valueFrom: { fieldRef: { fieldPath: 'spec.nodeName' } } },
          { name: 'APP', valueFrom: { fieldRef: { fieldPath: "metadata.labels['app']" } } },
          { name: 'GREETING', value: 'hello $(NODE)' },
        ],
        securityContext: { runAsUser: 1000 },
      },
      '192.0.2.7',
    );
    expect(line).toMatchObject({
      kind: 'command',
      file: '/bin/serve',
      args: ['--on=192.0.2.7', 'hello edge-1'],
      env: { WHERE: '192.0.2.7', NODE: 'edge-1', APP: 'web', GREETING: 'hello edge-1', HOSTNAME: 'p' },
      directory: '/srv',
      userId: 1000,
    });
  });

  it('knows nothing of the agent’s own environment', () => {
    const line = commandLine(pod(), { name: 'c', command: ['true'] }, undefined);
    expect(Object.keys(line.kind === 'command' ? line.env : {})).toEqual(['PATH', 'HOSTNAME']);
  });

  it.each([
    [{ command: [] }, /no command/],
    [{ args: ['only'] }, /no command/],
    [{ command: ['x'], envFrom: [{ secretRef: { name: 's' } }] }, /envFrom/],
    [{ command: ['x'], env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k' } } }] }, /env A/],
    [{ command: ['x'], volumeMounts: [{ name: 'v', mountPath: '/data' }] }, /volumeMount \/data/],
  ])('is refused for %j', (container, message) => {
    const line = commandLine(pod({ volumes: [{ name: 'v', emptyDir: {} }] }), container, undefined);
    expect(line.kind === 'unsupported' ? line.message : '').toMatch(message);
  });

  it('accepts a missing optional secret, and a directory of the machine at its own path', () => {
    const line = commandLine(
      pod({ volumes: [{ name: 'v', hostPath: { path: '/data' } }] }),
      {
        command: ['x'],
        env: [{ name: 'A', valueFrom: { secretKeyRef: { name: 's', key: 'k', optional: true } } }],
        volumeMounts: [{ name: 'v', mountPath: '/data' }],
      },
      undefined,
    );
    expect(line.kind).toBe('command');
  });
});
