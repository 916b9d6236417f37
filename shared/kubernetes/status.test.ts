import { describe, expect, it } from 'vitest';
import { invalidValue, required } from './causes.ts';
import {
  accessDenied,
  alreadyExists,
  conflict,
  disruptionBudgetExceeded,
  forbidden,
  invalid,
  methodNotAllowed,
  notFound,
  resourceVersionTooOld,
  StatusError,
  success,
  unknownPath,
} from './status.ts';

const nodes = { group: '', resource: 'nodes' };
const leases = { group: 'coordination.k8s.io', resource: 'leases' };

describe('status errors', () => {
  it('names the resource with its group, the core group without', () => {
    expect(notFound(nodes, 'absent').status).toEqual({
      kind: 'Status',
      apiVersion: 'v1',
      metadata: {},
      status: 'Failure',
      message: 'nodes "absent" not found',
      reason: 'NotFound',
      details: { name: 'absent', kind: 'nodes' },
      code: 404,
    });
    expect(alreadyExists(leases, 'kw-1').status).toMatchObject({
      message: 'leases.coordination.k8s.io "kw-1" already exists',
      details: { name: 'kw-1', group: 'coordination.k8s.io', kind: 'leases' },
      code: 409,
    });
  });

  it('is an error with the status message', () => {
    const error = unknownPath();
    expect(error).toBeInstanceOf(StatusError);
    expect(error.message).toBe('the server could not find the requested resource');
    expect(error.status.details).toEqual({});
  });

  it('asks a stale write to start from the latest version', () => {
    expect(conflict(leases, 'kw-1').message).toBe(
      'Operation cannot be fulfilled on leases.coordination.k8s.io "kw-1": the object has been modified; please apply your changes to the latest version and try again',
    );
  });

  it('puts one cause into the message as it is, and several into brackets', () => {
    const lease = { group: 'coordination.k8s.io', kind: 'Lease' };
    const cause = invalidValue('spec.leaseDurationSeconds', -5, 'must be greater than 0');
    expect(invalid(lease, 'kw-1', [cause]).status).toMatchObject({
      message:
        'Lease.coordination.k8s.io "kw-1" is invalid: spec.leaseDurationSeconds: Invalid value: -5: must be greater than 0',
      reason: 'Invalid',
      code: 422,
      details: { name: 'kw-1', group: 'coordination.k8s.io', kind: 'Lease', causes: [cause] },
    });
    expect(invalid(lease, 'a', [cause, required('spec'), required('spec')]).message).toBe(
      'Lease.coordination.k8s.io "a" is invalid: [spec.leaseDurationSeconds: Invalid value: -5: must be greater than 0, spec: Required value]',
    );
    expect(invalid(lease, 'a', []).message).toBe('Lease.coordination.k8s.io "a" is invalid');
  });

  it('forbids with and without a name', () => {
    expect(
      forbidden({ group: '', resource: 'pods' }, 'p-2', 'no PriorityClass with name absent was found').message,
    ).toBe('pods "p-2" is forbidden: no PriorityClass with name absent was found');
    expect(accessDenied({ user: 'bob', verb: 'list', target: nodes }).message).toBe(
      'nodes is forbidden: User "bob" cannot list resource "nodes" in API group "" at the cluster scope',
    );
    expect(
      accessDenied({ user: 'bob', verb: 'get', target: leases, namespace: 'n', name: 'l', subresource: 'status' })
        .message,
    ).toBe(
      'leases.coordination.k8s.io "l" is forbidden: User "bob" cannot get resource "leases/status" in API group "coordination.k8s.io" in the namespace "n"',
    );
  });

  it('keeps the texts clients wait for', () => {
    expect(resourceVersionTooOld('5', '9').status).toMatchObject({
      message: 'too old resource version: 5 (9)',
      reason: 'Expired',
      code: 410,
    });
    expect(
      disruptionBudgetExceeded('The disruption budget web needs 1 healthy pods and has 1 currently').status,
    ).toMatchObject({
      message: "Cannot evict pod as it would violate the pod's disruption budget.",
      reason: 'TooManyRequests',
      code: 429,
      details: { causes: [{ reason: 'DisruptionBudget' }] },
    });
    expect(methodNotAllowed(nodes, 'watch').message).toBe('watch is not supported on resources of kind "nodes"');
    expect(success(201)).toEqual({ kind: 'Status', apiVersion: 'v1', metadata: {}, status: 'Success', code: 201 });
  });
});
