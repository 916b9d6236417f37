/** Handlers of probes and hooks (pkg/apis/core/validation/validation.go: validateProbe, validateLifecycle). */

import { forbiddenField, invalidValue, NOT_NEGATIVE, notSupported, required } from '../../kubernetes/causes.ts';
import type { Cause } from '../../kubernetes/status.ts';
import { httpHeaderErrors, portNameErrors } from '../../kubernetes/validate-metadata.ts';
import type { Container, IntOrString, LifecycleHandler, Probe } from '../types.ts';

const SCHEMES = ['HTTP', 'HTTPS'];
const PORT_RANGE = 'must be between 1 and 65535, inclusive';

export const portRange = (field: string, value: number): Cause[] =>
  value >= 1 && value <= 65_535 ? [] : [invalidValue(field, value, PORT_RANGE)];

export const validatePort = (field: string, port: IntOrString = 0): Cause[] =>
  typeof port === 'number'
    ? portRange(field, port)
    : portNameErrors(port).map((error) => invalidValue(field, port, error));

const HANDLERS = ['exec', 'httpGet', 'tcpSocket', 'grpc', 'sleep'] as const;
type Handler = LifecycleHandler & Pick<Probe, 'grpc'>;

const VALIDATORS: Readonly<
  Record<(typeof HANDLERS)[number], (handler: Handler, field: string, graceSeconds: number) => Cause[]>
> = {
  exec: ({ exec }, field) => ((exec?.command ?? []).length === 0 ? [required(`${field}.command`)] : []),
  httpGet({ httpGet = {} }, field) {
    const { path = '', port, scheme = '', httpHeaders = [] } = httpGet;
    const causes = path === '' ? [required(`${field}.path`)] : [];
    causes.push(...validatePort(`${field}.port`, port));
    if (!SCHEMES.includes(scheme)) causes.push(notSupported(`${field}.scheme`, scheme, SCHEMES));
    for (const { name = '' } of httpHeaders) {
      for (const error of httpHeaderErrors(name)) causes.push(invalidValue(`${field}.httpHeaders`, name, error));
    }
    return causes;
  },
  tcpSocket: ({ tcpSocket }, field) => validatePort(`${field}.port`, tcpSocket?.port),
  grpc: ({ grpc }, field) => portRange(`${field}.port`, grpc?.port ?? 0),
  sleep({ sleep }, field, graceSeconds) {
    const seconds = sleep?.seconds ?? 0;
    const why = `must be greater than 0 and less than terminationGracePeriodSeconds (${graceSeconds}). Enable AllowPodLifecycleSleepActionZeroValue feature gate for zero sleep.`;
    return seconds > 0 && seconds <= graceSeconds ? [] : [invalidValue(`${field}.seconds`, seconds, why)];
  },
};

function validateHandler(handler: Handler, field: string, graceSeconds: number): Cause[] {
  const [first, ...more] = HANDLERS.filter((name) => handler[name] !== undefined);
  if (first === undefined) return [required(field, 'must specify a handler type')];
  return [
    ...VALIDATORS[first](handler, `${field}.${first}`, graceSeconds),
    ...more.map((name) => forbiddenField(`${field}.${name}`, 'may not specify more than 1 handler type')),
  ];
}

const COUNTS = [
  'initialDelaySeconds',
  'timeoutSeconds',
  'periodSeconds',
  'successThreshold',
  'failureThreshold',
] as const;

function validateProbe(name: ProbeName, probe: Probe, field: string, graceSeconds: number): Cause[] {
  const causes = validateHandler(probe, field, graceSeconds);
  for (const count of COUNTS) {
    const value = probe[count] ?? 0;
    if (value < 0) causes.push(invalidValue(`${field}.${count}`, value, NOT_NEGATIVE));
  }
  const { terminationGracePeriodSeconds: grace, successThreshold = 1 } = probe;
  const path = `${field}.terminationGracePeriodSeconds`;
  if (grace !== undefined && grace <= 0) causes.push(invalidValue(path, grace, 'must be greater than 0'));
  if (name !== 'readinessProbe') {
    if (successThreshold !== 1) causes.push(invalidValue(`${field}.successThreshold`, successThreshold, 'must be 1'));
  } else if (grace !== undefined) causes.push(invalidValue(path, grace, 'must not be set for readinessProbes'));
  return causes;
}

const PROBES = ['livenessProbe', 'readinessProbe', 'startupProbe'] as const;
type ProbeName = (typeof PROBES)[number];

/** Probes and hooks of a container that keeps running: every one but an ordinary init container. */
export function validateProbes(container: Container, field: string, graceSeconds: number): Cause[] {
  const hooks = (['postStart', 'preStop'] as const).flatMap((hook) => {
    const handler = container.lifecycle?.[hook];
    return handler === undefined ? [] : validateHandler(handler, `${field}.lifecycle.${hook}`, graceSeconds);
  });
  const probes = PROBES.flatMap((name) => {
    const probe = container[name];
    return probe === undefined ? [] : validateProbe(name, probe, `${field}.${name}`, graceSeconds);
  });
  return [...hooks, ...probes];
}

/** An init container terminates before its pod runs: nothing probes it, and no hook runs. */
export const refuseProbes = (container: Container, field: string): Cause[] =>
  (['lifecycle', ...PROBES] as const)
    .filter((name) => container[name] !== undefined)
    .map((name) =>
      forbiddenField(`${field}.${name}`, 'may not be set for init containers without restartPolicy=Always'),
    );
