import { CfnOutput } from 'aws-cdk-lib';
import { FunctionUrlAuthType, InvokeMode } from 'aws-cdk-lib/aws-lambda';
import { Construct } from 'constructs';
import { ManifestFunction, type ManifestFunctionProps } from './manifest-function.ts';

/**
 * Live watches: a function whose URL streams its answer, since the HTTP API cannot. Clients reach it by redirect from the API
 * with a signed ticket, or with the same credentials as at the API.
 */
export class Watch extends Construct {
  readonly url: string;

  constructor(scope: Construct, id: string, props: ManifestFunctionProps) {
    super(scope, id);
    const watch = new ManifestFunction(this, props);
    const url = watch.lambda.addFunctionUrl({
      authType: FunctionUrlAuthType.NONE,
      invokeMode: InvokeMode.RESPONSE_STREAM,
    });
    this.url = url.url;
    new CfnOutput(this, 'Url', { value: this.url, description: 'Where watches are streamed' });
  }
}
