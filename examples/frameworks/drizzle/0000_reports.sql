CREATE TABLE drizzle_reports (id serial PRIMARY KEY);
--> statement-breakpoint
SELECT pg_sleep(0.2);
--> statement-breakpoint
INSERT INTO drizzle_reports DEFAULT VALUES;
