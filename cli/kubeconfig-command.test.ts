import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { parse } from 'yaml';
import { readCallerIdentityToken } from '../shared/access/caller-identity-token.ts';
import { errorAnswer, type StandInCloudFormation, startCloudFormation } from '../test/support/cloudformation.ts';
import { findKubectls, makePlace, runKubectl } from '../test/support/kubectl.ts';
import { startTlsServer } from '../test/support/tls-server.ts';
import type { FindCredentials } from './aws-account.ts';
import { kubeconfigCommand } from './kubeconfig-command.ts';

const SECRET = 'a-secret-key';
const OUTPUTS = {
  Endpoint: 'https://api.example',
  ClusterId: 'edge',
  Region: 'eu-west-1',
  WatchUrl: 'https://w.example/',
};

let cloudFormation: StandInCloudFormation;
let home: string;
let lines: string[];
beforeEach(async () => {
  cloudFormation = await startCloudFormation(SECRET, 'eu-west-1');
  cloudFormation.stacks.set('Nodekeeper', { status: 'UPDATE_COMPLETE', outputs: OUTPUTS });
  home = mkdtempSync(join(tmpdir(), 'nk-kubeconfig-command-'));
  lines = [];
});
afterEach(async () => {
  await cloudFormation.close();
  rmSync(home, { recursive: true });
});

const found: FindCredentials = async () => ({ accessKeyId: 'AKID', secretAccessKey: SECRET, sessionToken: 'session' });

async function run(args: string[], environment: Record<string, string> = {}, find: FindCredentials = found) {
  const io = {
    environment: { HOME: home, AWS_ENDPOINT_URL_CLOUDFORMATION: cloudFormation.url, ...environment },
    nowMs: Date.UTC(2026, 0, 1),
    print: (line: string) => lines.push(line),
  };
  await kubeconfigCommand(args, io, find);
}
const REGION = ['--region', 'eu-west-1'];

interface Written {
  readonly 'current-context': string;
  readonly clusters: { readonly name: string; readonly cluster: { readonly server: string } }[];
  readonly users: { readonly user: { readonly exec: { readonly command: string; readonly args: string[] } } }[];
}
const written = (path = join(home, '.kube', 'config')) => parse(readFileSync(path, 'utf8')) as Written;

describe('nodekeeper kubeconfig', () => {
  it('requests the stack with a valid signature, and writes the file that kubectl reads', async () => {
    await run(REGION);
    expect(cloudFormation.asked).toEqual([{ action: 'DescribeStacks', stackName: 'Nodekeeper' }]);
    expect(lines).toEqual([`context edge.eu-west-1.nodekeeper in ${join(home, '.kube', 'config')}`]);
    const { clusters, users, ...rest } = written();
    expect(rest['current-context']).toBe('edge.eu-west-1.nodekeeper');
    expect(clusters).toEqual([{ name: 'edge.eu-west-1.nodekeeper', cluster: { server: 'https://api.example' } }]);
    const { command, args } = users[0]!.user.exec;
    expect(command).toBe('node');
    expect(args).toEqual([
      expect.stringMatching(/^\/.*\/cli\/bin\/nodekeeper\.mjs$/),
      ...['token', '--cluster-id', 'edge', '--region', 'eu-west-1'],
    ]);
  });

  it('selects one of several clusters of a stack by its id', async () => {
    const east = { EastEndpoint: 'https://east.example', EastClusterId: 'east' };
    const west = { WestEndpoint: 'https://west.example', WestClusterId: 'west' };
    cloudFormation.stacks.set('Edge2', { status: 'CREATE_COMPLETE', outputs: { ...east, ...west } });
    await run([...REGION, '--stack', 'Edge2', '--cluster-id', 'west']);
    expect(written().clusters[0]?.cluster.server).toBe('https://west.example');
    await expect(run([...REGION, '--stack', 'Edge2', '--cluster-id', 'north'])).rejects.toThrow(
      'the stack Edge2 has no cluster north',
    );
  });

  it('uses stack, alias, profile and file from the command line', async () => {
    cloudFormation.stacks.set('Edge2', { status: 'CREATE_COMPLETE', outputs: { ...OUTPUTS, ClusterId: 'two' } });
    const profiles: (string | undefined)[] = [];
    const find: FindCredentials = (profile) => {
      profiles.push(profile);
      return found(profile);
    };
    const file = join(home, 'mine');
    await run([...REGION, '--stack', 'Edge2', '--alias', 'two', '--profile', 'ops', '--file', file], {}, find);
    expect(profiles).toEqual(['ops']);
    expect(written(file)['current-context']).toBe('two');
    expect(written(file).users[0]!.user.exec.args.slice(-2)).toEqual(['--profile', 'ops']);
  });

  it('prints it for "-", and changes no file', async () => {
    await run([...REGION, '--file', '-']);
    expect((parse(lines.join('\n')) as Written).clusters).toHaveLength(1);
    expect(() => written()).toThrow('ENOENT');
  });

  it('writes to the first file of $KUBECONFIG', async () => {
    await run(REGION, { KUBECONFIG: `${join(home, 'first')}:${join(home, 'second')}` });
    expect(written(join(home, 'first')).clusters).toHaveLength(1);
  });

  it('finds the region in the environment, else in the profile', async () => {
    await run([], { AWS_REGION: 'eu-west-1' });
    mkdirSync(join(home, '.aws'));
    writeFileSync(
      join(home, '.aws', 'config'),
      '[default]\nregion = us-east-2\n[profile ops]\noutput = json\nregion=eu-west-1 # home\n',
    );
    await run([], { AWS_PROFILE: 'ops' });
    expect(cloudFormation.asked).toHaveLength(2);
    await expect(run([])).rejects.toThrow('SignatureDoesNotMatch');
  });

  it('retries once when CloudFormation fails, and not twice', async () => {
    cloudFormation.planned.push({ status: 503, text: errorAnswer('ServiceUnavailable', 'later') });
    await run(REGION);
    expect(cloudFormation.asked).toHaveLength(2);
    for (let times = 0; times < 2; times += 1) {
      cloudFormation.planned.push({ status: 503, text: errorAnswer('ServiceUnavailable', 'later') });
    }
    await expect(run(REGION)).rejects.toThrow('CloudFormation refused (ServiceUnavailable): later');
    expect(cloudFormation.asked).toHaveLength(4);
  });
});

describe('nodekeeper kubeconfig says what to do next', () => {
  it('without a region', async () => {
    await expect(run([])).rejects.toMatchObject({
      message: 'no region is set',
      next: expect.stringContaining('--region'),
    });
  });

  it('without credentials', async () => {
    const none = () => Promise.reject(new Error('Could not load credentials from any providers'));
    await expect(run(REGION, {}, none)).rejects.toMatchObject({
      message: expect.stringContaining('no AWS credentials were found'),
      next: expect.stringContaining('--profile'),
    });
  });

  it('when there is no such stack', async () => {
    await expect(run([...REGION, '--stack', 'Nodkeeper'])).rejects.toMatchObject({
      message: 'no stack Nodkeeper in eu-west-1',
      next: expect.stringContaining('--stack and --region'),
    });
    await expect(run([...REGION, '--stack', 'a b'])).rejects.toThrow('"a b" is not a valid stack name');
  });

  it.each([
    ['CREATE_IN_PROGRESS', 'is not deployed yet: CREATE_IN_PROGRESS', 'wait'],
    ['ROLLBACK_COMPLETE', 'failed: ROLLBACK_COMPLETE', 'events'],
    ['UPDATE_COMPLETE', 'has no outputs Endpoint and ClusterId', 'deploy again'],
  ])('when the stack is %s and has none of our outputs', async (status, message, next) => {
    cloudFormation.stacks.set('Nodekeeper', { status, outputs: {} });
    await expect(run(REGION)).rejects.toMatchObject({
      message: expect.stringContaining(message),
      next: expect.stringContaining(next),
    });
  });

  it.each([
    [403, errorAnswer('AccessDenied', 'User is not authorized'), 'cloudformation:DescribeStacks'],
    [403, errorAnswer('ExpiredToken', 'The security token is expired'), 'sign in again'],
    [400, errorAnswer('Throttling', 'Rate exceeded'), 'try again in a minute'],
    [502, '<html><p>Bad gateway</html>', 'proxy'],
  ])('when CloudFormation answers %i', async (status, text, next) => {
    cloudFormation.planned.push({ status, text }, { status, text });
    await expect(run(REGION)).rejects.toMatchObject({ next: expect.stringContaining(next) });
  });

  it('when there is no network', async () => {
    await cloudFormation.close();
    await expect(run(REGION)).rejects.toMatchObject({
      message: expect.stringContaining('no response from CloudFormation: connect ECONNREFUSED'),
      next: expect.stringContaining('region'),
    });
  });
});

describe.skipIf(findKubectls().length === 0)('with the kubectl of this machine', () => {
  it.each(findKubectls().map((kubectl) => [kubectl.name, kubectl] as const))(
    '%s reads the file and gets its token from the plugin',
    async (_, kubectl) => {
      const authorizations: (string | undefined)[] = [];
      const server = await startTlsServer((request, response) => {
        authorizations.push(request.headers.authorization);
        response.writeHead(200, { 'content-type': 'application/json' }).end('{"kind":"NodeList","apiVersion":"v1"}');
      });
      const place = makePlace();
      try {
        cloudFormation.stacks.set('Nodekeeper', {
          status: 'CREATE_COMPLETE',
          outputs: { ...OUTPUTS, Endpoint: server.url },
        });
        const kubeconfig = join(home, 'config');
        writeFileSync(kubeconfig, 'apiVersion: v1\nkind: Config\nclusters: null\ncontexts: null\nusers: null\n');
        await run([...REGION, '--file', kubeconfig]);
        const certificateFile = join(home, 'ca.pem');
        writeFileSync(certificateFile, server.certificateAuthority);
        const asked = await runKubectl(kubectl, ['get', '--raw', '/api/v1/nodes'], {
          kubeconfig,
          place,
          env: { SSL_CERT_FILE: certificateFile, AWS_ACCESS_KEY_ID: 'AKID', AWS_SECRET_ACCESS_KEY: SECRET },
        });
        expect(asked).toMatchObject({ exitCode: 0, stdout: '{"kind":"NodeList","apiVersion":"v1"}' });
        const [bearer] = authorizations;
        expect(readCallerIdentityToken(bearer!.replace('Bearer ', ''), Date.now())).toMatchObject({
          kind: 'askable',
          host: 'sts.eu-west-1.amazonaws.com',
        });
        const context = await runKubectl(kubectl, ['config', 'current-context'], { kubeconfig, place });
        expect(context.stdout.trim()).toBe('edge.eu-west-1.nodekeeper');
      } finally {
        place.remove();
        await server.close();
      }
    },
    60_000,
  );
});
