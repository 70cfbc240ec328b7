"""Descriptions of the service for people and programs: OpenAPI, files of example requests. Endpoints in, texts out."""
