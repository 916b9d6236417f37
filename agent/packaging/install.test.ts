import { execFileSync, spawnSync } from 'node:child_process';
import { generateKeyPairSync } from 'node:crypto';
import {
  chmodSync,
  copyFileSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  readlinkSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { rootCertificates } from 'node:tls';
import { fileURLToPath } from 'node:url';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { loadConfig } from '../adapters/config/load-config.ts';
import { plan } from '../bin/plan.ts';
import { ROOT_LABEL } from '../rules/podman-pod.ts';
import { logindDropIn } from '../rules/shutdown-start.ts';

const HERE = fileURLToPath(new URL('.', import.meta.url));
const CA = `${rootCertificates[0]}\n`;

describe('install.sh', () => {
  let directory: string;
  let root: string;
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'nodekeeper-install-'));
    root = join(directory, 'root');
    for (const file of ['install.sh', 'nodekeeper-agent.service', 'nodekeeper-pods.service'])
      copyFileSync(join(HERE, file), join(directory, file));
    writeFileSync(join(directory, 'nodekeeper-agent.mjs'), '');
    writeFileSync(join(directory, 'start-agent.mjs'), '');
    writeFileSync(join(directory, 'token'), 'abc.def\n');
    writeFileSync(join(directory, 'ca.pem'), CA);
  });
  afterEach(() => rmSync(directory, { recursive: true }));

  const install = (...args: readonly string[]): string =>
    execFileSync('sh', [join(directory, 'install.sh'), '--root', root, ...args], { encoding: 'utf8', stdio: 'pipe' });
  const usual = () => ['--endpoint', 'https://api.example', '--bootstrap-token-file', join(directory, 'token')];
  /** The installed configuration, as the agent reads it. */
  const load = () =>
    loadConfig(['--config', join(root, 'etc/nodekeeper/agent.yaml')], {
      readText: (path) => readFileSync(path.startsWith(root) ? path : join(root, path), 'utf8'),
      hostname: () => 'other',
    });

  it('writes a configuration that the agent accepts', () => {
    install(
      ...usual(),
      '--certificate-authority',
      join(directory, 'ca.pem'),
      '--node-name',
      'edge-1',
      '--runtime',
      'exec',
    );
    expect(load()).toMatchObject({
      kind: 'ok',
      warnings: [],
      config: {
        nodeName: 'edge-1',
        runtime: 'exec',
        bootstrapToken: 'abc.def',
        certificateAuthority: CA,
      },
    });
  });

  it('accepts what `nodekeeper join-command --install` prints', () => {
    const hash = `sha256:${'a'.repeat(64)}`;
    install('--endpoint', 'https://api.example', '--ca-hash', hash, '--bootstrap-token', 'abc.def');
    expect(load()).toMatchObject({ kind: 'ok', config: { caHash: hash, bootstrapToken: 'abc.def' } });
    expect(statSync(join(root, 'etc/nodekeeper/bootstrap-token')).mode & 0o777).toBe(0o600);
  });

  it.each([[[]], [['--runtime', 'none']], [['--runtime', 'exec']], [['--runtime', 'podman']]])(
    'turns graceful shutdown on, with the default grace for ordinary pods (%j)',
    async (runtime) => {
      install(...usual(), ...runtime);
      expect(load()).toMatchObject({ kind: 'ok', config: { runtime: runtime[1] ?? 'exec' } });
      const printed: string[] = [];
      const config = join(root, 'etc/nodekeeper/agent.yaml');
      const pods = 'kind: Pod\nmetadata: {name: web}\nspec: {containers: [{name: c}]}\n';
      await plan(['shutdown', '--config', config, '--pods', 'pods.yaml'], {
        readText: (path) => (path === 'pods.yaml' ? pods : readFileSync(path, 'utf8')),
        hostname: () => 'other',
        print: (line) => printed.push(line),
        printError: (line) => printed.push(line),
      });
      expect(printed).toEqual([
        'Requested shutdown delay: 40 s. These pods need 30 s at most.',
        'priority 0, 30 s, begins after 0 s at the latest:',
        '  default/web  priority 0  grace 30 s',
        'priority 2000000000, 10 s: no pods, skipped',
      ]);
    },
  );

  it('prints how pods run, where it writes the configuration', () => {
    const sentence = /^runtime none: this node runs no pods; a pod bound to it fails with reason NoRuntime\.$/m;
    expect(install(...usual(), '--runtime', 'none')).toMatch(sentence);
    // The configuration is kept, and may name another runtime.
    expect(install()).not.toMatch(sentence);
    rmSync(root, { recursive: true });
    expect(install(...usual())).toMatch(/^runtime exec: pods run as processes of this machine, without images\.$/m);
    expect(install('--help')).toMatch(/none runs no pods/);
  });

  it('chooses podman where it is installed', () => {
    mkdirSync(join(root, 'usr/bin'), { recursive: true });
    writeFileSync(join(root, 'usr/bin/podman'), '');
    chmodSync(join(root, 'usr/bin/podman'), 0o755);
    install(...usual());
    expect(load()).toMatchObject({ kind: 'ok', config: { runtime: 'podman' } });
  });

  it('lets logind wait as long as the pods have, and keeps settings that are there', () => {
    install(...usual());
    const file = join(root, 'etc/systemd/logind.conf.d/99-kubelet.conf');
    expect(readFileSync(file, 'utf8')).toBe(logindDropIn(40_000));
    writeFileSync(file, '[Login]\nInhibitDelayMaxSec=90\n');
    install();
    expect(readFileSync(file, 'utf8')).toContain('=90');
  });

  it('installs the key of releases, and a start program with a command', () => {
    const key = generateKeyPairSync('ed25519').publicKey.export({ type: 'spki', format: 'pem' });
    writeFileSync(join(directory, 'key.pub'), key);
    install(...usual(), '--update-key', join(directory, 'key.pub'));
    expect(load()).toMatchObject({ kind: 'ok', warnings: [], config: { updatePublicKey: String(key).trim() } });
    expect(readlinkSync(join(root, 'usr/local/bin/nodekeeper-agent'))).toBe('../lib/nodekeeper/start-agent.mjs');
    expect(existsSync(join(root, 'usr/local/lib/nodekeeper/start-agent.mjs'))).toBe(true);
    writeFileSync(join(root, 'etc/nodekeeper/agent.yaml'), 'runtime: exec\n');
    expect(install('--update-key', join(directory, 'key.pub'))).toMatch(/add to .* updatePublicKeyFile: /);
  });

  it('starts the version that it installed, also after an update', () => {
    const agents = join(root, 'var/lib/nodekeeper/agents');
    mkdirSync(agents, { recursive: true });
    for (const name of ['current', 'trial.json', 'failed.json']) writeFileSync(join(agents, name), '');
    install(...usual());
    expect(readdirSync(agents)).toEqual(['failed.json']);
  });

  it('can be repeated, and changes nothing then', () => {
    const everything = (): Record<string, string> =>
      Object.fromEntries(
        readdirSync(root, { recursive: true, withFileTypes: true })
          .filter((entry) => entry.isFile())
          .map(({ parentPath, name }) => [join(parentPath, name), readFileSync(join(parentPath, name), 'utf8')]),
      );
    install(...usual());
    const first = everything();
    install();
    expect(everything()).toEqual(first);
  });

  it('is removed again, with key and configuration only on request', () => {
    install(...usual());
    writeFileSync(join(root, 'var/lib/nodekeeper/node-key.pem'), 'key');
    const files = () =>
      readdirSync(root, { recursive: true, withFileTypes: true })
        .filter((entry) => !entry.isDirectory())
        .map(({ name }) => name)
        .toSorted();
    expect(install('--uninstall')).toMatch(/--purge removes them/);
    expect(files()).toEqual(['agent.yaml', 'bootstrap-token', 'node-key.pem']);
    install('--uninstall', '--purge');
    expect(files()).toEqual([]);
    install('--uninstall');
  });

  it('terminates the pods of both runtimes when it is removed, and leaves no secret of them', (context) => {
    // tmpfs on all that the script changes, in a mount namespace of its own.
    const hide = 'for each in /usr/local /etc/systemd /var/lib /run; do mount -t tmpfs tmpfs "$each" || exit 9; done';
    const inNamespace = (script: string) =>
      spawnSync('unshare', ['--mount', 'sh', '-c', `${hide}; ${script}`], { encoding: 'utf8' });
    if (inNamespace('true').status !== 0) context.skip('no mount namespaces');
    const called = `echo "$(basename "$0") $*" >> ${join(directory, 'calls')}`;
    const podman = `${called}; if [ "$2" = ps ]; then echo one; echo two; fi`;
    const programs = { systemctl: called, podman, nft: called, ip: called };
    for (const [name, script] of Object.entries(programs)) {
      writeFileSync(join(directory, name), `#!/bin/sh\n${script}\n`, { mode: 0o755 });
    }
    const { status, stdout, stderr } = inNamespace(
      `mkdir -p /run/nodekeeper/volumes /var/lib/nodekeeper; echo '{"dnsAddress":"169.254.20.10","layout":1}' >/var/lib/nodekeeper/services.json; PATH=${directory}:$PATH sh ${directory}/install.sh --uninstall; ls -A /run`,
    );
    expect([status, stdout.split('\n').slice(1), stderr]).toEqual([0, [''], '']);
    const calls = readFileSync(join(directory, 'calls'), 'utf8').trim().split('\n');
    expect(calls[0]).toBe('systemctl disable --now nodekeeper-agent.service nodekeeper-pods.service');
    expect(calls.slice(1, 4)).toEqual([
      `podman pod ps --quiet --filter label=${ROOT_LABEL}=/var/lib/nodekeeper`,
      'podman pod rm --force --time 5 one',
      'podman pod rm --force --time 5 two',
    ]);
    expect(calls.slice(4, 9)).toEqual([
      'nft delete table ip nodekeeper',
      'nft delete table ip nodekeeper-policy',
      'nft delete table ip6 nodekeeper',
      'nft delete table ip6 nodekeeper-policy',
      'ip address delete 169.254.20.10/32 dev lo',
    ]);
  });

  it('does not remove settings of logind that others wrote', () => {
    const file = join(root, 'etc/systemd/logind.conf.d/99-kubelet.conf');
    install(...usual());
    writeFileSync(file, '[Login]\n');
    install('--uninstall');
    expect(existsSync(file)).toBe(true);
  });

  it('refuses a runtime that does not exist, before it installs anything', () => {
    expect(() => install(...usual(), '--runtime', 'docker')).toThrow(
      /--runtime has to be none, exec or podman; found docker/,
    );
    expect(existsSync(root)).toBe(false);
  });

  it('keeps the token to root, and a configuration that is there as it is', () => {
    install(...usual());
    expect(statSync(join(root, 'etc/nodekeeper/bootstrap-token')).mode & 0o777).toBe(0o600);
    const config = join(root, 'etc/nodekeeper/agent.yaml');
    writeFileSync(config, 'ours');
    expect(install()).toContain('kept');
    expect(readFileSync(config, 'utf8')).toBe('ours');
  });

  it('keeps each installed file until its successor is complete', () => {
    install(...usual());
    const installed = join(root, 'usr/local/lib/nodekeeper/nodekeeper-agent.mjs');
    writeFileSync(installed, 'old');
    writeFileSync(join(directory, 'nodekeeper-agent.mjs'), 'new');
    // The disk is full: a file may have no byte.
    const limited = 'ulimit -f 0; trap "" XFSZ; exec sh "$0" "$@"';
    const args = ['-c', limited, join(directory, 'install.sh'), '--root', root];
    expect(() => execFileSync('sh', args, { stdio: 'pipe' })).toThrow();
    expect(readFileSync(installed, 'utf8')).toBe('old');
  });

  it('accepts installed files as its input', () => {
    const authority = join(root, 'etc/nodekeeper/ca.pem');
    install(...usual(), '--certificate-authority', join(directory, 'ca.pem'));
    rmSync(join(root, 'etc/nodekeeper/agent.yaml'));
    const token = join(root, 'etc/nodekeeper/bootstrap-token');
    install(...usual().slice(0, 2), '--bootstrap-token-file', token, '--certificate-authority', authority);
    expect(load().kind).toBe('ok');
    expect(readFileSync(authority, 'utf8')).toBe(CA);
  });

  it('loosens the unit by what the runtime needs', () => {
    const dropIns = () => readdirSync(join(root, 'etc/systemd/system/nodekeeper-agent.service.d'));
    install(...usual(), '--runtime', 'none');
    expect(dropIns()).toEqual([]);
    for (const runtime of ['podman', 'exec']) {
      for (const text of [runtime, `"${runtime}"`, `'${runtime}' # of this machine`]) {
        writeFileSync(join(root, 'etc/nodekeeper/agent.yaml'), `runtime: ${text}\n`);
        install();
        expect(dropIns(), text).toEqual([`${runtime}.conf`]);
      }
    }
    // The configuration is kept, so the unit must not be that of another runtime.
    install('--runtime', 'podman');
    expect(dropIns()).toEqual(['exec.conf']);
    // In JSON the script does not find the runtime.
    writeFileSync(join(root, 'etc/nodekeeper/agent.yaml'), '{"runtime": "podman"}\n');
    install('--runtime', 'podman');
    expect(dropIns()).toEqual(['podman.conf']);
  });

  it('installs the unit with the group of the pods, and starts it before the agent', () => {
    install(...usual());
    const unit = (name: string): string => readFileSync(join(root, 'etc/systemd/system', name), 'utf8');
    expect(unit('nodekeeper-pods.service')).toMatch(/^Delegate=cpu cpuset memory pids$/m);
    expect(unit('nodekeeper-agent.service')).toMatch(/^Wants=.*\bnodekeeper-pods\.service$/m);
    expect(unit('nodekeeper-agent.service')).toMatch(/^After=.*\bnodekeeper-pods\.service$/m);
    expect(unit('nodekeeper-agent.service')).not.toMatch(/^ProtectControlGroups=yes/m);
  });

  it('says what is missing', () => {
    expect(() => install()).toThrow(/--endpoint is needed/);
    expect(existsSync(root)).toBe(false);
    expect(() => install('--endpoint', 'https://x"y')).toThrow(/quotes/);
  });
});
