import { CfnOutput } from 'aws-cdk-lib';
import { FunctionUrlAuthType, type IFunction, InvokeMode } from 'aws-cdk-lib/aws-lambda';
import { Construct } from 'constructs';
import { ManifestFunction, type ManifestFunctionProps } from './manifest-function.ts';

/**
 * Live watches: a function with a URL that streams its response, which the HTTP API cannot do. The API redirects
 * clients to it with a signed ticket. Clients may also call it with the credentials that they use at the API.
 */
export class Watch extends Construct {
  readonly url: string;
  readonly lambda: IFunction;

  constructor(scope: Construct, id: string, props: ManifestFunctionProps) {
    super(scope, id);
    const watch = new ManifestFunction(this, props);
    const url = watch.lambda.addFunctionUrl({
      authType: FunctionUrlAuthType.NONE,
      invokeMode: InvokeMode.RESPONSE_STREAM,
    });
    this.url = url.url;
    this.lambda = watch.lambda;
    new CfnOutput(this, 'Url', { value: this.url, description: 'Where watches are streamed' });
  }
}
