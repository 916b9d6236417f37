import { describe, expect, it } from 'vitest';
import { KUBERNETES_YAML, readYaml } from '../../shared/config/yaml-documents.ts';
import { checkConfig } from './config-settings.ts';
import { WINDOWS_DEFAULTS } from './system-defaults.ts';
import { configText, environmentText, orderWithout, serviceCommandLine } from './windows-install.ts';

const PATHS = {
  node: 'C:\\Program Files\\nodejs\\node.exe',
  program: 'D:\\my programs\\nodekeeper',
  data: 'C:\\ProgramData\\nodekeeper',
};

describe('the installation on Windows', () => {
  it('quotes paths with spaces in the command line of the service', () => {
    expect(serviceCommandLine(PATHS)).toBe(
      '"C:\\Program Files\\nodejs\\node.exe" --lite-mode --max-semi-space-size=1 ' +
        '"--env-file=C:\\ProgramData\\nodekeeper\\agent.env" "D:\\my programs\\nodekeeper\\start-agent.mjs" ' +
        '--config "C:\\ProgramData\\nodekeeper\\agent.yaml"',
    );
  });

  it('writes variables with backslashes as they are', () => {
    expect(environmentText(PATHS)).toContain("STATE_DIRECTORY='C:\\ProgramData\\nodekeeper'\r\n");
  });

  it('writes a configuration that the agent accepts', () => {
    const settings = { endpoint: 'https://api.example', clusterId: 'edge', nodeName: 'win-1', runtime: 'none' };
    const read = readYaml(
      configText(PATHS, { ...settings, hasAuthority: true, hasUpdateKey: true }),
      'agent.yaml',
      KUBERNETES_YAML,
    );
    if (read.kind === 'malformed') throw new Error(JSON.stringify(read.faults));
    const { documents } = read;
    const checked = checkConfig({ documents, flags: {}, hostname: 'h', system: WINDOWS_DEFAULTS });
    expect([checked.faults, checked.warnings]).toEqual([[], []]);
    expect(checked.config).toMatchObject({
      endpoint: 'https://api.example',
      clusterId: 'edge',
      nodeName: 'win-1',
      runtime: 'none',
      rootDirectory: 'C:\\ProgramData\\nodekeeper',
      shutdownGracePeriodMs: 40_000,
    });
    expect(checked.files.map(({ path }) => path)).toEqual([
      'C:\\ProgramData\\nodekeeper\\ca.pem',
      'C:\\ProgramData\\nodekeeper\\bootstrap-token',
      'C:\\ProgramData\\nodekeeper\\update-key.pem',
    ]);
  });
});

const checked = (fields: string) => {
  const text = `kind: KubeletConfiguration\napiVersion: kubelet.config.k8s.io/v1beta1\n${fields}`;
  const read = readYaml(text, 'agent.yaml', KUBERNETES_YAML);
  if (read.kind === 'malformed') throw new Error(JSON.stringify(read.faults));
  const flags = { endpoint: 'https://api.example' };
  return checkConfig({ documents: read.documents, flags, hostname: 'h', system: WINDOWS_DEFAULTS });
};

describe('settings on Windows', () => {
  it('has the defaults of a kubelet on Windows', () => {
    const { config } = checked('maxPods: 5\n');
    expect(config.evictionHard['memory.available']).toEqual({ kind: 'quantity', value: 500 * 1_024 * 1_024 });
    expect(config.evictionHard).not.toHaveProperty('nodefs.inodesFree');
  });

  it('turns the graceful shutdown off by its feature gate, and by no other', () => {
    const off = checked('shutdownGracePeriod: 30s\nfeatureGates: { WindowsGracefulNodeShutdown: false }\n');
    expect([off.config.shutdownGracePeriodMs, off.warnings]).toEqual([0, []]);
    const on = checked('shutdownGracePeriod: 30s\nfeatureGates: { NodeSwap: false }\n');
    expect([on.config.shutdownGracePeriodMs, on.warnings.length]).toEqual([30_000, 1]);
  });

  it.each([
    ['podman', { runtime: 'podman' }, /runtime "podman": expected one of "none", "exec"/],
    ['a path without a drive', { 'root-dir': '/var/lib' }, /expected an absolute path/],
  ])('refuses %s', (_name, flags, expected) => {
    const all = { endpoint: 'https://api.example', ...flags };
    const { faults } = checkConfig({ documents: [], flags: all, hostname: 'h', system: WINDOWS_DEFAULTS });
    expect(faults.map(({ message }) => message)).toEqual([expect.stringMatching(expected)]);
  });
});

describe('settings that Windows does not have', () => {
  it('are refused by name', () => {
    const { faults } = checked('cgroupRoot: /pods\n');
    expect(faults.map(({ message }) => message)).toEqual(['cgroupRoot: not supported on Windows']);
  });
});

describe('the order of services after the agent is removed', () => {
  it.each([
    ['as before', ['a'], ['x', 'Nodekeeper-Agent', 'a'], ['x', 'a'], ['x', 'a']],
    ['without what the agent has added', ['a', 'b'], ['nodekeeper-agent', 'a', 'b'], ['a'], ['a']],
    ['with what another service has added since', ['a'], ['nodekeeper-agent', 'a', 'y'], undefined, ['y']],
    ['none, as before', ['a'], ['nodekeeper-agent', 'a'], undefined, undefined],
    ['empty, as before', ['a'], ['nodekeeper-agent', 'a'], [], []],
  ])('is %s', (_name, dependencies, current, before, expected) => {
    expect(orderWithout('nodekeeper-agent', dependencies, current, before)).toEqual(expected);
  });
});

it('the configuration has no file, name or authority without its setting', () => {
  const settings = { endpoint: 'https://api.example', clusterId: 'edge', nodeName: undefined, runtime: 'none' };
  const text = configText(PATHS, { ...settings, hasAuthority: false, hasUpdateKey: false });
  for (const field of ['certificateAuthorityFile', 'updatePublicKeyFile', 'hostnameOverride'])
    expect(text).not.toContain(field);
});
