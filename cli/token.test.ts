import { describe, expect, it } from 'vitest';
import { readCallerIdentityToken } from '../shared/access/caller-identity-token.ts';
import { tokenCommand } from './token.ts';

const NOW_MS = Date.UTC(2026, 0, 1, 12);
const found = async () => ({ accessKeyId: 'AKID', secretAccessKey: 'secret' });

async function run(args: string[], environment: Record<string, string> = {}, find: typeof found = found) {
  const lines: string[] = [];
  await tokenCommand(args, { environment, nowMs: NOW_MS, print: (line) => lines.push(line) }, find);
  return JSON.parse(lines.join('')) as {
    apiVersion: string;
    kind: string;
    status: { token: string; expirationTimestamp: string };
  };
}

describe('nodekeeper token', () => {
  it('prints an ExecCredential for kubectl, in the requested version', async () => {
    const asked = JSON.stringify({ apiVersion: 'client.authentication.k8s.io/v1beta1' });
    const credential = await run(['--cluster-id', 'c', '--region', 'eu-west-1'], { KUBERNETES_EXEC_INFO: asked });
    expect(credential).toMatchObject({ kind: 'ExecCredential', apiVersion: 'client.authentication.k8s.io/v1beta1' });
    expect(credential.status.expirationTimestamp).toBe('2026-01-01T12:14:00Z');
    expect(readCallerIdentityToken(credential.status.token, NOW_MS)).toMatchObject({
      kind: 'askable',
      host: 'sts.eu-west-1.amazonaws.com',
    });
  });

  it('uses the region of the environment, and China’s endpoint for its regions', async () => {
    const { status } = await run(['--cluster-id', 'c'], { AWS_REGION: 'cn-north-1' });
    expect(readCallerIdentityToken(status.token, NOW_MS)).toMatchObject({ host: 'sts.cn-north-1.amazonaws.com.cn' });
  });

  it.each([
    ['--cluster-id is missing', [], {}],
    ['no region is set', ['--cluster-id', 'c'], {}],
    ['"Paris" is not an AWS region', ['--cluster-id', 'c', '--region', 'Paris'], {}],
  ])('says %s', async (message, args, environment) => {
    await expect(run(args, environment)).rejects.toThrow(message);
  });

  it('says what to do when there are no credentials', async () => {
    const none = () => Promise.reject(new Error('Could not load credentials from any providers'));
    await expect(run(['--cluster-id', 'c', '--region', 'eu-west-1'], {}, none)).rejects.toMatchObject({
      message: 'no AWS credentials were found: Could not load credentials from any providers',
      next: expect.stringContaining('aws sts get-caller-identity'),
    });
  });
});
