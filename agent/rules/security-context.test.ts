import { describe, expect, it } from 'vitest';
import type { Container, KubePod } from '../../shared/kinds/types.ts';
import { NO_SECURITY } from '../../test/support/no-security.ts';
import { processSecurity } from './security-context.ts';

const securityOf = (ofContainer?: object, ofPod?: object, agentUserId = 0) =>
  processSecurity(
    { metadata: { name: 'p', namespace: 'd', uid: 'u' }, spec: { securityContext: ofPod } } as unknown as KubePod,
    { name: 'c', securityContext: ofContainer } as unknown as Container,
    agentUserId,
  );

describe('the security of a process', () => {
  it.each<[string, object | undefined, object | undefined, object]>([
    ['no context', undefined, undefined, {}],
    ['the user and group of the pod', undefined, { runAsUser: 5, runAsGroup: 6 }, { userId: 5, groupId: 6 }],
    ['those of the container first', { runAsUser: 7 }, { runAsUser: 5, runAsGroup: 6 }, { userId: 7, groupId: 6 }],
    [
      'groups of the pod, fsGroup first',
      {},
      { supplementalGroups: [3, 'x', 4], fsGroup: 2 },
      { supplementalGroups: [2, 3, 4] },
    ],
    ['a root that is read', { readOnlyRootFilesystem: true }, {}, { readOnlyRoot: true }],
    ['no new privileges', { allowPrivilegeEscalation: false }, {}, { noNewPrivileges: true }],
    ['new privileges', { allowPrivilegeEscalation: true, readOnlyRootFilesystem: false }, {}, {}],
    [
      'capabilities in the form of setpriv',
      { capabilities: { drop: ['ALL'], add: ['CAP_NET_ADMIN', 'kill', 'A_CAP_B'] } },
      {},
      { capabilities: { dropped: ['all'], added: ['net_admin', 'kill', 'a_cap_b'] } },
    ],
    ['capabilities that are only added', { capabilities: { add: ['KILL'] } }, {}, {}],
    ['a privileged container', { privileged: true, capabilities: { drop: ['ALL'] } }, {}, {}],
    ['a user that is not root', { runAsNonRoot: true, runAsUser: 5 }, {}, { userId: 5 }],
    ['runAsNonRoot of false', { runAsNonRoot: false, runAsUser: 0 }, {}, { userId: 0 }],
    ['profiles of the runtime', { seccompProfile: { type: 'RuntimeDefault' }, procMount: 'Default' }, {}, {}],
    ['empty options', { seLinuxOptions: {}, windowsOptions: {}, appArmorProfile: {} }, { sysctls: [] }, {}],
  ])('of %s', (_what, ofContainer, ofPod, over) => {
    expect(securityOf(ofContainer, ofPod)).toEqual({ ...NO_SECURITY, ...over });
  });

  it.each([
    ['seLinuxOptions', { seLinuxOptions: { level: 's0' } }, 'seLinuxOptions'],
    ['windowsOptions', { windowsOptions: { hostProcess: true } }, 'windowsOptions'],
    ['procMount', { procMount: 'Unmasked' }, 'procMount'],
    ['seccomp', { seccompProfile: { type: 'Localhost' } }, 'seccompProfile.localhostProfile'],
    ['AppArmor', { appArmorProfile: { type: 'Localhost' } }, 'appArmorProfile.localhostProfile'],
    ['sysctls', { sysctls: [{ name: 'a' }, { name: 'b' }] }, 'sysctls[a]'],
  ])('refuses %s, of the container and of the pod', (_what, context, field) => {
    const refusal = { kind: 'refused', message: `securityContext.${field} is not supported on this node` };
    expect(securityOf(context)).toEqual(refusal);
    expect(securityOf({}, context)).toEqual(refusal);
  });

  it('refuses user ids of its own', () => {
    const podOf = (hostUsers: boolean): KubePod => ({ metadata: {}, spec: { hostUsers } });
    expect(processSecurity(podOf(false), { name: 'c' }, 0)).toEqual({
      kind: 'refused',
      message: 'hostUsers: false is not supported on this node',
    });
    expect(processSecurity(podOf(true), { name: 'c' }, 0).kind).toBe('security');
  });

  const where = '(pod: "p_d(u)", container: c)';
  it.each<[string, object, number, string | undefined]>([
    ['root', { runAsUser: 0 }, 0, `container's runAsUser breaks non-root policy ${where}`],
    ['root, for an agent of a user', { runAsUser: 0 }, 5, `container's runAsUser breaks non-root policy ${where}`],
    ['no user', {}, 0, `container has runAsNonRoot and image will run as root ${where}`],
    ['no user, for an agent of a user', {}, 5, undefined],
  ])('refuses runAsNonRoot with %s', (_what, context, agentUserId, message) => {
    const security = securityOf({ runAsNonRoot: true, ...context }, {}, agentUserId);
    expect(security).toEqual(message === undefined ? NO_SECURITY : { kind: 'refused', message });
  });

  it('has the user of an agent that is not root, and no other one', () => {
    expect(securityOf({ runAsUser: 5 }, {}, 5)).toEqual({ ...NO_SECURITY, userId: 5 });
    const message = 'securityContext.runAsUser 6 is not supported on this node: its agent does not run as root';
    expect(securityOf({ runAsUser: 6 }, {}, 5)).toEqual({ kind: 'refused', message });
  });
});
