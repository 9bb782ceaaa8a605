// A NestJS module that provides leases, and closes them with the application.
import "reflect-metadata";
import { Global, Inject, Injectable, Module } from "@nestjs/common";
import type { OnApplicationBootstrap, OnApplicationShutdown } from "@nestjs/common";
import { NestFactory } from "@nestjs/core";
import { open, type Leases } from "leasehold";
import { work } from "./work.mjs";

export const LEASES = Symbol("Leases");
const address = process.env["LEASEHOLD_MEMBER"] ?? "flease://127.0.0.1:7400";

@Global()
@Module({ providers: [{ provide: LEASES, useFactory: () => open(address) }], exports: [LEASES] })
export class LeasesModule implements OnApplicationShutdown {
  constructor(@Inject(LEASES) private readonly leases: Leases) {}

  onApplicationShutdown(): Promise<void> {
    return this.leases.close();
  }
}

@Injectable()
class Reports implements OnApplicationBootstrap {
  constructor(@Inject(LEASES) private readonly leases: Leases) {}

  async onApplicationBootstrap(): Promise<void> {
    await this.leases.using("reports/nightly", { wait: "5m" }, (lease) => work("report", lease));
  }
}

@Module({ imports: [LeasesModule], providers: [Reports] })
class AppModule {}

const app = await NestFactory.createApplicationContext(AppModule, { logger: ["error"] });
await app.close();
