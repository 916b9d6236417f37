/** Roles, impersonation and tokens with the real kubectl, over the API without engine. */
import { readFileSync, writeFileSync } from 'node:fs';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { findKubectls, type Kubectl, type KubectlPlace, makePlace, runKubectl } from '../support/kubectl.ts';
import { type MemoryApi, startMemoryApi } from '../support/memory-api.ts';

let api: MemoryApi;
let place: KubectlPlace;

beforeAll(async () => {
  api = await startMemoryApi();
  place = makePlace();
});

afterAll(async () => {
  place?.remove();
  await api?.stop();
});

/** By release: one of them may also be the one on PATH. */
const withTokens = [...new Map(findKubectls().map((each) => [each.minor, each])).values()].filter(
  ({ minor }) => minor >= 24,
);
/** The oldest one with `create token`, and the newest one. */
const kubectls = [...withTokens.slice(0, 1), ...withTokens.slice(1).slice(-1)];

describe.each(kubectls)('$name', (kubectl: Kubectl) => {
  const namespace = `team-${kubectl.minor}`;
  const run = async (args: string, kubeconfig = api.kubeconfig) => {
    const { exitCode, stdout, stderr } = await runKubectl(kubectl, args.split(' '), { kubeconfig, place });
    return { exitCode, stdout: stdout.trim(), stderr: stderr.trim() };
  };
  const output = async (args: string, kubeconfig?: string): Promise<string> => {
    const { exitCode, stdout, stderr } = await run(args, kubeconfig);
    expect(exitCode, `${args}: ${stderr}`).toBe(0);
    return stdout;
  };
  /** A configuration with a bearer token and no other credential. */
  const configWith = (token: string): string => {
    const config = JSON.parse(readFileSync(api.kubeconfig, 'utf8'));
    config.users[0].user = { token };
    const path = `${place.work}/with-token`;
    writeFileSync(path, JSON.stringify(config));
    return path;
  };

  it('creates roles and bindings, and asks for others what they allow', async () => {
    await output(`create namespace ${namespace}`);
    await output(`create role reader --verb=get,list --resource=pods,pods/log -n ${namespace}`);
    await output(`create rolebinding reader --role=reader --user=uma -n ${namespace}`);
    const canI = async (what: string) => (await run(`auth can-i ${what} --as=uma`)).stdout;
    expect(await canI(`list pods -n ${namespace}`)).toBe('yes');
    expect(await canI(`get pods/log -n ${namespace}`)).toBe('yes');
    expect(await canI(`delete pods -n ${namespace}`)).toBe('no');
    expect(await canI('list pods -n default')).toBe('no');
    expect(await canI('list nodes')).toBe('no');
    expect((await run(`get pods -n ${namespace} --as=uma`)).stderr).toBe(
      `No resources found in ${namespace} namespace.`,
    );
    expect((await run('get nodes --as=uma')).stderr).toContain(
      'Error from server (Forbidden): nodes is forbidden: User "uma" cannot list resource "nodes" in API group "" at the cluster scope',
    );
    const list = await output(`auth can-i --list -n ${namespace} --as=uma`);
    expect(list).toMatch(/^pods\/log +\[\] +\[\] +\[get list\]$/m);
    expect(list).toMatch(/^selfsubjectaccessreviews\.authorization\.k8s\.io +\[\] +\[\] +\[create\]$/m);
    expect(list).toMatch(/\[\/version\/?\]/);
    expect(await output('auth can-i --list --as=root --as-group=system:masters')).toMatch(
      /^\*\.\* +\[\] +\[\] +\[\*\]$/m,
    );
  });

  it('describes the default roles and grants only what the caller holds', async () => {
    expect(await output('describe clusterrole view')).toMatch(/^ +configmaps +\[\] +\[\] +\[get list watch\]$/m);
    expect(await output('get clusterrolebindings cluster-admin -o wide')).toContain('system:masters');
    await output(`create rolebinding nora --clusterrole=admin --user=nora -n ${namespace}`);
    const refused = await run(
      `create rolebinding root --clusterrole=cluster-admin --user=nora -n ${namespace} --as=nora`,
    );
    expect(refused.stderr).toContain('is attempting to grant RBAC permissions not currently held');
    await output(`create rolebinding otto --clusterrole=edit --user=otto -n ${namespace} --as=nora`);
    expect((await run(`create role all --verb=* --resource=nodes -n ${namespace} --as=nora`)).exitCode).toBe(1);
    expect((await run('delete clusterrole view')).stderr).toContain('the default roles and bindings cannot be changed');
  });

  it('creates tokens, which sign in', async () => {
    await output(`create serviceaccount bot -n ${namespace}`);
    await output(`create rolebinding bot --clusterrole=view --serviceaccount=${namespace}:bot -n ${namespace}`);
    const token = await output(`create token bot -n ${namespace} --duration=20m`);
    const config = configWith(token);
    expect(await output(`get serviceaccount bot -n ${namespace} -o name`, config)).toBe('serviceaccount/bot');
    expect((await run(`get secrets -n ${namespace}`, config)).stderr).toContain(
      `User "system:serviceaccount:${namespace}:bot" cannot list resource "secrets"`,
    );
    if (kubectl.minor >= 28) {
      expect(await output('auth whoami -o jsonpath={.status.userInfo.groups}', config)).toContain(
        `system:serviceaccounts:${namespace}`,
      );
    }
    const other = configWith(await output(`create token bot -n ${namespace} --audience=vault`));
    expect((await run(`get pods -n ${namespace}`, other)).stderr).toMatch(/Unauthorized|must be logged in/);
    expect(await output(`auth can-i get pods -n ${namespace} --as=system:serviceaccount:${namespace}:bot`)).toBe('yes');
  });
});

it('runs with a kubectl, and the API logs nothing but the token for another audience', () => {
  expect(kubectls.length).toBeGreaterThan(0);
  expect(api.log).toEqual([expect.stringContaining('service account token: for another audience')]);
});
