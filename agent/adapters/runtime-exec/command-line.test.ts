import { describe, expect, it } from 'vitest';
import { commandLine } from './command-line.ts';

const pod = (spec: Record<string, unknown> = {}) => ({
  metadata: { name: 'p', namespace: 'ns', uid: 'u-1', labels: { app: 'web' } },
  spec: { nodeName: 'edge-1', ...spec },
});
const inputs = (variables: Record<string, string> = {}) => ({ kind: 'ready' as const, variables, mounts: [] });
const ROOT = 0;

describe('the process of a container', () => {
  it('has the words of the spec with its variables', () => {
    const container = {
      name: 'c',
      command: ['/bin/serve', '--on=$(WHERE)'],
      args: ['$(GREETING)', '$(HOSTNAME)'],
      workingDir: '/srv',
      securityContext: { runAsUser: 1000 },
    };
    expect(commandLine(pod(), container, inputs({ WHERE: 'here', GREETING: 'hello' }), ROOT)).toMatchObject({
      kind: 'command',
      file: '/bin/serve',
      args: ['--on=here', 'hello', '$(HOSTNAME)'],
      env: { WHERE: 'here', GREETING: 'hello', HOSTNAME: 'p' },
      directory: '/srv',
      userId: 1000,
    });
  });

  it('has no variable of the agent', () => {
    const line = commandLine(pod(), { name: 'c', command: ['true'] }, inputs(), ROOT);
    expect(Object.keys(line.kind === 'command' ? line.env : {})).toEqual(['PATH', 'HOSTNAME']);
  });

  it.each([
    [{ command: [] }, 'no command: without images there is no default command'],
    [{ args: ['only'] }, 'no command: without images there is no default command'],
    [
      { name: 'c', command: ['x'], securityContext: { runAsNonRoot: true } },
      'container has runAsNonRoot and image will run as root (pod: "p_ns(u-1)", container: c)',
    ],
    [
      { name: 'c', command: ['x'], securityContext: { runAsNonRoot: true, runAsUser: 0 } },
      `container's runAsUser breaks non-root policy (pod: "p_ns(u-1)", container: c)`,
    ],
    [
      { command: ['x'], securityContext: { seLinuxOptions: { level: 's0' } } },
      'securityContext.seLinuxOptions is not supported on this node',
    ],
  ])('is refused for %j', (container, message) => {
    expect(commandLine(pod(), container, inputs(), ROOT)).toEqual({ kind: 'unsupported', message });
  });

  it('needs no mount for a directory of the machine at its own path', () => {
    const mount = { source: '/data', target: '/data', isFile: false, readOnly: false };
    const line = commandLine(pod(), { command: ['x'] }, { ...inputs(), mounts: [mount] }, ROOT);
    expect(line).toMatchObject({ kind: 'command', mounts: [] });
  });
});
