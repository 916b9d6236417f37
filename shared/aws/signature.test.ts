import { SignatureV4 } from '@smithy/signature-v4';
import { describe, expect, it } from 'vitest';
import { Sha256 } from '../../cli/sha256.ts';
import { requestSigner } from './signed-post.ts';

const CREDENTIALS = { accessKeyId: 'AKIDEXAMPLE', secretAccessKey: 'wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY' };
const NOW_MS = 1_795_197_026_123;
const REGION = 'eu-central-1';

interface Call {
  readonly service: string;
  readonly contentType: string;
  readonly target?: string;
  readonly body: string;
}

const JSON_CALL: Call = {
  service: 'dynamodb',
  contentType: 'application/x-amz-json-1.0',
  target: 'DynamoDB_20120810.UpdateItem',
  body: JSON.stringify({ text: 'Grüße 🚀' }),
};
const FORM_CALL: Call = {
  service: 'ec2',
  contentType: 'application/x-www-form-urlencoded; charset=utf-8',
  body: 'Action=DescribeInstances&NextToken=a%2Bb',
};

describe('the signature', () => {
  it.each([
    ['a JSON call with long-lived credentials', CREDENTIALS, JSON_CALL],
    ['a JSON call with a session token', { ...CREDENTIALS, sessionToken: 'to/ken+=' }, JSON_CALL],
    ['a form with long-lived credentials', CREDENTIALS, FORM_CALL],
    ['a form with a session token', { ...CREDENTIALS, sessionToken: 'to/ken+=' }, FORM_CALL],
  ])('equals the signature of the SDK: %s', async (_, credentials, { service, contentType, body, target }) => {
    const host = `${service}.${REGION}.amazonaws.com`;
    const sign = requestSigner({ region: REGION, service, host, credentials, contentType });
    const ours = sign({ ...(target === undefined ? {} : { target }), body, nowMs: NOW_MS });
    const signer = new SignatureV4({ region: REGION, service, credentials, sha256: Sha256, applyChecksum: false });
    const theirs = await signer.sign(
      {
        method: 'POST',
        protocol: 'https:',
        hostname: host,
        path: '/',
        query: {},
        headers: {
          host,
          'content-type': contentType,
          ...(target === undefined ? {} : { 'x-amz-target': target }),
        },
        body,
      },
      { signingDate: new Date(NOW_MS) },
    );
    expect(ours).toEqual(theirs.headers);
  });

  it('uses the signing key of its day', () => {
    const { body, ...service } = FORM_CALL;
    const options = { region: REGION, host: 'localhost', credentials: CREDENTIALS, ...service };
    const sign = requestSigner(options);
    sign({ body, nowMs: NOW_MS });
    const nextDay = { body, nowMs: NOW_MS + 86_400_000 };
    expect(sign(nextDay)).toEqual(requestSigner(options)(nextDay));
  });
});
