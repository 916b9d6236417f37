import { describe, expect, it } from 'vitest';
import { answerForm } from './accept.ts';

const KUBECTL_GET =
  'application/json;as=Table;v=v1;g=meta.k8s.io,application/json;as=Table;v=v1beta1;g=meta.k8s.io,application/json';

describe('the form of an answer', () => {
  it('is a table for kubectl get', () => {
    expect(answerForm(KUBECTL_GET)).toEqual({ kind: 'table', version: 'v1' });
  });

  it.each([
    undefined,
    '',
    '*/*',
    'application/json',
    'application/vnd.kubernetes.protobuf',
    'application/vnd.kubernetes.protobuf,application/json',
    'application/json;as=Table;v=v9;g=meta.k8s.io',
    'text/html',
  ])('is the object for %j', (accept) => {
    expect(answerForm(accept)).toEqual({ kind: 'object' });
  });

  it('is metadata only for metadata clients', () => {
    expect(
      answerForm(
        'application/vnd.kubernetes.protobuf;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1,application/json',
      ),
    ).toEqual({ kind: 'partialMetadata', version: 'v1' });
  });

  it('follows the qualities', () => {
    expect(answerForm('application/json;q=0.5,application/json;as=Table;v=v1beta1;g=meta.k8s.io')).toEqual({
      kind: 'table',
      version: 'v1beta1',
    });
  });
});
